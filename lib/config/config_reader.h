// ConfigReader: fills a RunConfig from sources in order, later ones winning, and keeps what is wrong.
// A key is valid when it was given (or need not be) and no source gave it a fault, even one that a later
// source overrides.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "config/config_source.h"
#include "config/fault_list.h"
#include "config/load.h"

namespace hpt {

class ConfigReader {
 public:
  void read(const ConfigSource& source);
  void read_set(const std::string& assignment);  // of --set: "parallel.tp=2"
  void read_option(const ConfigOption& option);
  // Tells the required keys that no source gave; `name` is the main file's.
  void require_all(const std::string& name);

  bool is_given(std::string_view key) const { return config.places.contains(key); }
  bool is_valid(std::string_view key) const { return !invalid_.contains(key); }
  void mark_invalid(std::string_view key) { invalid_.emplace(key); }

  RunConfig config;
  FaultList faults;

 private:
  void read_section(const YamlOrigin& origin, const YamlEntry& section);
  void read_value(const YamlOrigin& origin, std::string_view key, const YamlNode& value);
  void tell(const std::string& place, std::string_view key, std::string_view fault);
  void tell_unknown_key(const std::string& place, std::string_view section, std::string_view name);

  std::set<std::string, std::less<>> invalid_;
  std::map<std::string, std::string, std::less<>> section_places_;
};

}  // namespace hpt
