// Cases made from the schema itself: every key gets each kind of fault.
#include "config/schema.h"

#include <catch2/catch.hpp>
#include <set>

#include "config/nearest.h"
#include "config/small_config.h"

namespace hpt::test {
namespace {

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Where the key's value stands in with_key's text; where the key does, if it has no value.
std::string place_of_value(const std::string& text, const Field& field, const std::string& value) {
  const std::vector<std::string> lines = lines_of(text);
  std::string section;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with(" ")) section = lines[i];
    if (section == field.section + ":" && lines[i].starts_with("  " + field.name + ": ")) {
      return format("c.yaml:{}:{}: {}: ", i + 1, value.empty() ? 3 : field.name.size() + 5, field.key());
    }
  }
  return "the key is not there";
}

// One fault, at the value, that says what is right.
void check_refused(const Field& field, const std::string& value) {
  const std::string text = with_key(field.key(), value);
  const std::string message = refusal(text);
  CAPTURE(text);
  CAPTURE(message);
  REQUIRE(lines_of(message).size() == 1);
  CHECK(message.starts_with(place_of_value(text, field, value)));
  CHECK(mentions(message, field.about.expects));
}

TEST_CASE("the small config of these tests is valid, also with every key given its own value") {
  const RunConfig config = load(kSmallConfig);
  for (const Field& field : schema()) {
    CAPTURE(field.key());
    CHECK(refusal(with_key(field.key(), field.dump(config))) == "");
  }
}

TEST_CASE("a value of the wrong type is refused for every key") {
  for (const Field& field : schema()) {
    CAPTURE(field.key());
    check_refused(field, "{a: 1}");
    if (field.about.instead != "none") check_refused(field, "");
    const bool takes_lists = field.about.type == ValueType::list;
    if (!takes_lists) check_refused(field, "[1]");
    switch (field.about.type) {
      case ValueType::whole:
        for (const char* wrong : {"1.0", "1e1", "0x1", "\"1\"", "'1'", "true", "one", "1_0", "nan"}) {
          check_refused(field, wrong);
        }
        break;
      case ValueType::real:
        for (const char* wrong : {"\"0.5\"", "0x1", "nan", ".inf", "1e999", "half", "true"})
          check_refused(field, wrong);
        break;
      case ValueType::boolean:
        for (const char* wrong : {"yes", "on", "1", "0", "\"true\"", "tRUE"}) check_refused(field, wrong);
        break;
      case ValueType::word:
        for (const char* wrong : {"1", "nothing-like-it"}) check_refused(field, wrong);
        break;
      case ValueType::text:
        check_refused(field, "\"\"");
        check_refused(field, "\"" + std::string(5000, 'x') + "\"");
        break;
      case ValueType::list:
        if (!mentions(field.about.expects, "path")) check_refused(field, "7");
        break;
    }
  }
}

TEST_CASE("a number just outside its range is refused for every key that has a range") {
  int num_ranges = 0;
  for (const Field& field : schema()) {
    CAPTURE(field.key());
    for (const std::string& value : {field.about.outside, field.about.beyond}) {
      if (value.empty()) continue;
      check_refused(field, value);
      ++num_ranges;
    }
  }
  CHECK(num_ranges > 60);
}

TEST_CASE("a key given twice is refused for every key, with both places") {
  const RunConfig config = load(kSmallConfig);
  for (const Field& field : schema()) {
    const std::string line = "  " + field.name + ": " + field.dump(config) + "\n";
    const std::string once = with_key(field.key(), field.dump(config));
    const std::size_t section = once.find(field.section + ":\n");
    const std::string message = refusal(replaced(once.substr(0, section), "", "") +
                                        replaced(once.substr(section), line, line + line));
    CAPTURE(message);
    REQUIRE(lines_of(message).size() == 1);
    CHECK(mentions(message, ": " + field.key() + ": given twice (first in line "));
  }
}

TEST_CASE("a key with one wrong letter is refused and the right key is named, for every key") {
  for (const Field& field : schema()) {
    for (std::size_t i = 0; i < field.name.size(); ++i) {
      std::string name = field.name;
      name[i] = 'Q';
      const std::string message = refusal(with_key(field.section + "." + name, "1"));
      CAPTURE(message);
      REQUIRE(lines_of(message).size() == 1);
      CHECK(mentions(message, format(": {}.{}: unknown key; the nearest known one is {}.", field.section,
                                     name, field.section)));
      if (field.name.size() > 3) CHECK(message.ends_with(" is " + field.key()));
    }
  }
}

TEST_CASE("a key in the wrong case is refused and the right key is named, for every key") {
  for (const Field& field : schema()) {
    std::string name = field.name;
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
    const std::string message = refusal(with_key(field.section + "." + name, "1"));
    CHECK(message.ends_with("unknown key; the nearest known one is " + field.key()));
  }
}

TEST_CASE("a key in the wrong section or at the top is refused and its own section is named") {
  CHECK(refusal(with_key("model.lr", "1")).ends_with("the nearest known one is optimizer.lr"));
  CHECK(refusal(with_key("batch.tp", "1")).ends_with("the nearest known one is parallel.tp"));
  CHECK(refusal(kSmallConfig + "warmup_steps: 3\n") ==
        "c.yaml:19:1: warmup_steps: unknown section; the nearest known name is optimizer.warmup_steps");
  CHECK(refusal(kSmallConfig + "paralel:\n  tp: 3\n") ==
        "c.yaml:19:1: paralel: unknown section; the nearest known name is parallel");
}

TEST_CASE("every required key is missed by name, and only required keys are") {
  const std::string message = refusal("");
  std::set<std::string> missed;
  for (const std::string& line : lines_of(message)) {
    CHECK(line.starts_with("c.yaml:1:1: "));
    CHECK(mentions(line, ": required but not given; it must be "));
    missed.insert(line.substr(12, line.find(": required") - 12));
  }
  CHECK(missed == std::set<std::string>{"run.name", "run.steps", "model.layers", "model.hidden",
                                        "model.heads", "model.seq_length", "model.vocab_size", "batch.global",
                                        "optimizer.lr", "data.train"});
  CHECK(refusal(replaced(kSmallConfig, "  hidden: 32\n", "")) ==
        "c.yaml:4:1: model.hidden: required but not given; it must be " +
            find_field("model.hidden")->about.expects);
}

TEST_CASE("keys are unique and sections stand together") {
  std::set<std::string> keys;
  std::vector<std::string> sections;
  for (const Field& field : schema()) {
    CHECK(keys.insert(field.key()).second);
    if (sections.empty() || sections.back() != field.section) sections.push_back(field.section);
  }
  CHECK(sections == std::vector<std::string>{"run", "model", "parallel", "batch", "optimizer", "data", "eval",
                                             "checkpoint", "log"});
}

TEST_CASE("edit distance counts letters inserted, deleted, replaced and swapped, in any case") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("lr", "rl") == 1);
  CHECK(edit_distance("Hidden", "hidden") == 0);
  CHECK(edit_distance("hiden", "hidden") == 1);
}

}  // namespace
}  // namespace hpt::test
