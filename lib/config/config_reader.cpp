#include "config/config_reader.h"

#include "config/schema.h"
#include "config/text.h"

namespace hpt {
namespace {

std::string place_of_option(const std::string& option, const std::string& value) {
  return format("{} {}", option, value.empty() ? "''" : value);
}

}  // namespace

void ConfigReader::tell(const std::string& place, std::string_view key, std::string_view fault) {
  faults.add(format("{}: {}: {}", place, shown(key), fault));
}

void ConfigReader::tell_unknown_key(const std::string& place, std::string_view section,
                                    std::string_view name) {
  if (faults.is_full()) return faults.add({});
  tell(place, format("{}.{}", section, name),
       format("unknown key; the nearest known one is {}", nearest_key(section, name)));
}

void ConfigReader::read_value(const YamlOrigin& origin, std::string_view key, const YamlNode& value) {
  for (const ValueFault& fault : find_field(key)->read(value, config)) {
    tell(origin.place(fault.line, fault.column), key, fault.text);
    mark_invalid(key);
  }
  config.places[std::string(key)] = origin.place(value.line, value.column);
}

void ConfigReader::read(const ConfigSource& source) {
  std::map<std::string_view, int> first_lines;
  for (const YamlEntry& entry : source.root.entries) {
    const std::string& name = entry.key.text;
    const std::string place = source.origin.place(entry.key.line, entry.key.column);
    const auto [first, is_new] = first_lines.emplace(name, entry.key.line);
    if (name == "defaults") continue;  // read_sources has followed it
    if (!is_section(name)) {
      if (faults.is_full()) {
        faults.add({});
      } else {
        tell(place, name, format("unknown section; the nearest known name is {}", nearest_section(name)));
      }
    } else if (!is_new) {
      tell(place, name, format("given twice (first in line {})", first->second));
      read_section(source.origin, entry);
    } else {
      section_places_[name] = place;
      read_section(source.origin, entry);
    }
  }
}

void ConfigReader::read_section(const YamlOrigin& origin, const YamlEntry& section) {
  const std::string& name = section.key.text;
  const YamlNode& body = section.value;
  if (body.kind != YamlNode::Kind::map && body.kind != YamlNode::Kind::none) {
    tell(origin.place(body.line, body.column), name, "must be a map of keys");
    for (const Field& field : schema()) {
      if (field.section == name) mark_invalid(field.key());
    }
    return;
  }
  std::map<std::string_view, int> first_lines;
  for (const YamlEntry& entry : body.entries) {
    const std::string key = format("{}.{}", name, entry.key.text);
    const std::string place = origin.place(entry.key.line, entry.key.column);
    const auto [first, is_new] = first_lines.emplace(entry.key.text, entry.key.line);
    if (find_field(key) == nullptr) {
      tell_unknown_key(place, name, entry.key.text);
    } else if (!is_new) {
      tell(place, key, format("given twice (first in line {})", first->second));
      mark_invalid(key);
    } else {
      read_value(origin, key, entry.value);
    }
  }
}

void ConfigReader::read_set(const std::string& assignment) {
  const YamlOrigin origin{place_of_option("--set", assignment), false};
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos) {
    faults.add(format("{}: must be written as SECTION.KEY=VALUE", origin.place(1, 1)));
    return;
  }
  const std::string key = assignment.substr(0, equals);
  if (key.empty()) {
    faults.add(format("{}: a key is missing; must be written as SECTION.KEY=VALUE", origin.place(1, 1)));
    return;
  }
  if (find_field(key) != nullptr) {
    read_value(origin, key, parse_yaml(assignment.substr(equals + 1), origin));
    return;
  }
  const std::size_t dot = key.find('.');
  if (key == "defaults") {
    tell(origin.place(1, 1), key, "can stand only in a config file, at its top");
  } else if (is_section(key)) {
    tell(origin.place(1, 1), key, "is a section; set its keys one by one, as SECTION.KEY=VALUE");
  } else if (dot == std::string::npos) {
    tell(origin.place(1, 1), key, format("unknown key; the nearest known name is {}", nearest_section(key)));
  } else {
    tell_unknown_key(origin.place(1, 1), key.substr(0, dot), key.substr(dot + 1));
  }
}

void ConfigReader::read_option(const ConfigOption& option) {
  HPT_REQUIRE(find_field(option.key) != nullptr);
  YamlNode value;
  value.kind = YamlNode::Kind::scalar;
  value.text = option.value;
  read_value({place_of_option(option.option, option.value), false}, option.key, value);
}

void ConfigReader::require_all(const std::string& name) {
  for (const Field& field : schema()) {
    const std::string key = field.key();
    if (!field.required || is_given(key) || !is_valid(key)) continue;
    const auto place = section_places_.find(field.section);
    tell(place == section_places_.end() ? YamlOrigin{name, true}.place(1, 1) : place->second, key,
         format("required but not given; it must be {}", field.about.expects));
    mark_invalid(key);
  }
}

}  // namespace hpt
