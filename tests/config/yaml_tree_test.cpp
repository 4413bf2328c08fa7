#include "config/yaml_tree.h"

#include <catch2/catch.hpp>

#include "config/text.h"
#include "core/counter_rng.h"
#include "core/error.h"
#include "support/cost.h"

namespace hpt {
namespace {

const YamlOrigin kFile{"c.yaml", true};

std::string fault_of(const std::string& text) {
  try {
    parse_yaml(text, kFile);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    return error.what();
  }
  return "";
}

std::string times(const std::string& text, std::size_t count) {
  std::string repeated;
  for (std::size_t i = 0; i < count; ++i) repeated += text;
  return repeated;
}

TEST_CASE("a tree keeps texts, quotes, order and 1-based places") {
  const YamlNode root = parse_yaml("a: 1\nb:\n  - x\n  - \"2\"\nc: {d: ~}\n", kFile);
  REQUIRE(root.kind == YamlNode::Kind::map);
  REQUIRE(root.entries.size() == 3);
  CHECK(root.entries[0].value.text == "1");
  CHECK_FALSE(root.entries[0].value.quoted);
  const YamlNode& list = root.entries[1].value;
  REQUIRE(list.items.size() == 2);
  CHECK(list.items[1].text == "2");
  CHECK(list.items[1].quoted);
  CHECK(list.items[1].line == 4);
  CHECK(list.items[1].column == 5);
  CHECK(root.entries[2].value.entries[0].value.kind == YamlNode::Kind::none);
}

TEST_CASE("a byte-order mark at the start and CRLF line ends change nothing, not even places") {
  const YamlNode root = parse_yaml(
      "\xEF\xBB\xBF"
      "a: 1\r\nb: x\r\n",
      kFile);
  REQUIRE(root.entries.size() == 2);
  CHECK(root.entries[0].key.column == 1);
  CHECK(root.entries[1].value.text == "x");
  CHECK(root.entries[1].value.line == 2);
}

TEST_CASE("a second byte-order mark is refused") {
  CHECK(fault_of("\xEF\xBB\xBF\xEF\xBB\xBF"
                 "a: 1\n") == "c.yaml:1:1: a second byte-order mark, but a config has at most one");
}

TEST_CASE("an empty text, a comment and a lone document mark are an empty tree") {
  for (const char* text : {"", "\n\n", "# nothing\n", "---\n", "\xEF\xBB\xBF"}) {
    CAPTURE(text);
    CHECK(parse_yaml(text, kFile).kind == YamlNode::Kind::none);
  }
}

TEST_CASE("what is no plain UTF-8 text is refused with its place") {
  CHECK(fault_of("a: 1\n\tb: 2\n") == "c.yaml:2:1: a tab in the indentation, but YAML is indented by spaces");
  CHECK(fault_of("a: 1\n  \tb: 2\n").starts_with("c.yaml:2:3: a tab"));
  CHECK(fault_of(std::string("a: 1\nb: \0", 9)) ==
        "c.yaml:2:4: the control character \\x00, but a config is plain text");
  CHECK(fault_of("a: 1\rb: 2").starts_with("c.yaml:1:5: the control character \\x0d"));
  CHECK(fault_of("a: \x1b[31m").starts_with("c.yaml:1:4: the control character \\x1b"));
  CHECK(fault_of("a: \xC3\x28") == "c.yaml:1:4: not valid UTF-8");
  CHECK(fault_of("a: 1\nb: x\xFF") == "c.yaml:2:5: not valid UTF-8");
  CHECK(fault_of(std::string("\xFF\xFE"
                             "a\0:\0",
                             6))
            .starts_with("c.yaml:1:"));
  CHECK(fault_of("a: \"\\ud800\"") != "");
}

TEST_CASE("a tab after the indentation is white space") {
  CHECK(parse_yaml("a:\t1\t# note\n", kFile).entries[0].value.text == "1");
}

TEST_CASE("documents, anchors, aliases, merge keys, tags and odd keys are refused by name and place") {
  CHECK(fault_of("a: 1\n---\nb: 2\n").starts_with("c.yaml:2:1: a second document"));
  CHECK(fault_of("{a: 1} {b: 2}").starts_with("c.yaml:1:8: a second document"));
  CHECK(fault_of("a: &x 1").find("anchors are not accepted") != std::string::npos);
  CHECK(fault_of("a: &x [1]").find("anchors are not accepted") != std::string::npos);
  CHECK(fault_of("a: *x").find("c.yaml:1:4: ") == 0);
  CHECK(fault_of("a: &x [*x]").find("anchors are not accepted") != std::string::npos);
  CHECK(fault_of("<<: {a: 1}").find("merge keys are not accepted") != std::string::npos);
  CHECK(fault_of("a: !!int 3").find("the tag tag:yaml.org,2002:int is not accepted") != std::string::npos);
  CHECK(fault_of("? [a]\n: b").find("where a key should") != std::string::npos);
  CHECK(fault_of(": b").find("where a key should") != std::string::npos);
}

TEST_CASE("a syntax error is told with its place") {
  CHECK(fault_of("a: b: c\n") == "c.yaml:1:5: not valid YAML: illegal map value");
  CHECK(fault_of("a: 1\nb: [1, 2\n").starts_with("c.yaml:"));
  CHECK(fault_of("a: \"x").starts_with("c.yaml:1:"));
  CHECK(fault_of("a: 1\n]\n").starts_with("c.yaml:2:1: not valid YAML"));
  const std::string unclosed = "not valid YAML: the double quote that opens here is not closed";
  CHECK(fault_of("\u00e9: 1\na: \"t\nb: 2\n") == "c.yaml:2:4: " + unclosed);
  CHECK(fault_of("a: \"t\\\"\n") == "c.yaml:1:4: " + unclosed);
  CHECK(fault_of("\"t\\\\\": [\"x\ny\", 'b\"']\n").empty());
}

TEST_CASE("depth, node count and size have a limit that is just reached or just passed") {
  CHECK(fault_of(times("[", kMaxYamlDepth) + times("]", kMaxYamlDepth)) == "");
  CHECK(fault_of(times("[", kMaxYamlDepth + 1) + times("]", kMaxYamlDepth + 1)).find("inside each other") !=
        std::string::npos);
  CHECK(fault_of(format("[{}]", times("1,", kMaxYamlNodes - 1))) == "");
  CHECK(fault_of(format("[{}]", times("1,", kMaxYamlNodes))).find("too many for a config") !=
        std::string::npos);
  CHECK(fault_of(format("#{}", times("x", kMaxConfigBytes - 1))) == "");
  CHECK(fault_of(format("#{}", times("x", kMaxConfigBytes))).find("at most 131072") != std::string::npos);
}

TEST_CASE("hostile texts are answered within a second and 64 MiB") {
  const std::size_t n = kMaxConfigBytes;
  std::string stairs;
  for (std::size_t i = 0; stairs.size() + i + 3 < n; ++i) stairs += std::string(i, ' ') + "a:\n";
  std::string aliases = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 40; ++i) aliases += format("a{}: &a{} [*a{}, *a{}]\n", i, i, i - 1, i - 1);
  const std::vector<std::string> hostile = {times("[", n),
                                            times("a: [\n", n / 5),
                                            times("{a: ", n / 4),
                                            times("{", n),
                                            times("- ", n / 2),
                                            times("? ", n / 2),
                                            times("!", n),
                                            times(":", n),
                                            times("&a ", n / 3),
                                            times("\"", n),
                                            times("'", n),
                                            times("{a ", n / 3),
                                            times("--- \n", n / 5),
                                            times("a: *b\n", n / 6),
                                            times("<<: ", n / 4),
                                            format("a: |\n{}", times(" x\n", n / 3 - 3)),
                                            times("%YAML 1.2\n", n / 10),
                                            stairs,
                                            aliases,
                                            times("a: &a [*a]\n", n / 11),
                                            format("a: \"{}", times("\\\n", n / 2 - 4)),
                                            times("[{", n / 2),
                                            times("k: 1\n", n / 5)};
  const long before = peak_mebibytes();
  for (const std::string& text : hostile) {
    const double start = cpu_seconds();
    try {
      parse_yaml(text, kFile);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::usage);
      CHECK(std::string(error.what()).size() < 1000);
    }
    CAPTURE(text.substr(0, 20));
    CHECK(cpu_seconds() - start < kSlowdown);
  }
  if (kPeakIsTrue) CHECK(peak_mebibytes() - before < 64);
}

TEST_CASE("any UTF-8 text survives being written as a quoted scalar and read again") {
  const CounterRng rng(3, RngPurpose::test);
  const std::vector<std::string> pieces = {"a",
                                           "Z",
                                           "0",
                                           " ",
                                           "\n",
                                           "\t",
                                           "\r",
                                           "\"",
                                           "\\",
                                           "'",
                                           "#",
                                           ": ",
                                           "{",
                                           "]",
                                           "\x01",
                                           "\x7f",
                                           "\xC3\xA9",
                                           "\xC2\x85",
                                           "\xE2\x80\xA8",
                                           "\xEF\xBB\xBF",
                                           "\xF0\x9F\x98\x80",
                                           "%",
                                           "--- ",
                                           "&",
                                           "*"};
  for (std::uint64_t round = 0; round < 2000; ++round) {
    std::string text;
    const std::uint64_t length = rng.bits64(round, 1) % 12;
    for (std::uint64_t i = 0; i < length; ++i) text += pieces[rng.bits64(round, 2 + i) % pieces.size()];
    const std::string quoted = yaml_quoted(text);
    CAPTURE(quoted);
    CHECK_FALSE(has_control_character(quoted));
    const YamlNode root = parse_yaml(format("k: {}\n", quoted), kFile);
    REQUIRE(root.entries.size() == 1);
    REQUIRE(root.entries[0].value.text == text);
  }
}

TEST_CASE("UTF-8 is checked as Unicode defines it") {
  for (const char* text :
       {"", "plain", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"}) {
    CHECK(first_invalid_utf8(text) == std::string::npos);
  }
  for (const char* text :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xE2\x82", "\xF0\x9F\x98", "\xFF"}) {
    CAPTURE(text);
    CHECK(first_invalid_utf8(text) == 0);
  }
  CHECK(first_invalid_utf8("ok\xFF") == 2);
}

TEST_CASE("a text in a message is one short line whatever it holds") {
  CHECK(shown("a\nb\x1b\xFF") == "a\\nb\\x1b\\xff");
  CHECK(shown(times("x", 100'000)).size() < 200);
  CHECK(shown(times("\xC3\xA9", 100'000)).size() < 200);
  CHECK(first_invalid_utf8(shown(times("a\xC3\xA9", 1'000))) == std::string::npos);
}

}  // namespace
}  // namespace hpt
