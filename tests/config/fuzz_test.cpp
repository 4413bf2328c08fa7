// Mutants of configs/tiny.yaml: whatever the text, the answer is a valid config or an Error of kind usage.
//   HPT_FUZZ_SEED=<seed> HPT_FUZZ_DRAWS=100000 config_test "thousands of*"
// looks at others, or at more.
#include <catch2/catch.hpp>
#include <fstream>

#include "config/schema.h"
#include "config/small_config.h"
#include "config/text.h"
#include "support/draws.h"
#include "support/mutant.h"
#include "support/paths.h"

namespace hpt::test {
namespace {

using hpt::testing::Draws;
using hpt::testing::number_of;

const std::vector<std::string>& snippets() {
  static const std::vector<std::string> all = {":",
                                               ": ",
                                               "- ",
                                               "[",
                                               "]",
                                               "{",
                                               "}",
                                               ",",
                                               "#",
                                               "\"",
                                               "'",
                                               "|\n",
                                               ">\n",
                                               "&a ",
                                               "*a",
                                               "!",
                                               "!!int ",
                                               "<<: ",
                                               "---\n",
                                               "...\n",
                                               "%TAG ",
                                               "\t",
                                               "\r\n",
                                               "\n",
                                               "  ",
                                               "\\",
                                               "~",
                                               "null",
                                               "auto",
                                               "none",
                                               "-1",
                                               "0",
                                               "1e999",
                                               "nan",
                                               "1e-4",
                                               "9999999999999999999999",
                                               "4Ki",
                                               "010",
                                               "? ",
                                               "@",
                                               "`",
                                               "\xFF",
                                               "\xC3",
                                               "\xEF\xBB\xBF",
                                               "\x01",
                                               "\"\\x00\"",
                                               "defaults: configs/tiny.yaml\n",
                                               "tp: 2\n",
                                               "run:\n",
                                               "true",
                                               "[1, 2]",
                                               "{path: a, weight: 1}",
                                               std::string(1, '\0')};
  return all;
}

// A whole line to another place.
void move_line(std::string& text, Draws& draws) {
  const std::size_t at = draws.below(text.size() + 1);
  const std::size_t begin = text.rfind('\n', at) == std::string::npos ? 0 : text.rfind('\n', at) + 1;
  const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
  const std::string line = begin < end ? text.substr(begin, end - begin) : "";
  const std::size_t target = text.find('\n', draws.below(text.size() + 1));
  text.insert(target == std::string::npos ? text.size() : target + 1, line);
}

void mutate(std::string& text, Draws& draws) {
  if (draws.one_in(7))
    move_line(text, draws);
  else
    testing::mutate(text, snippets(), draws);
}

// "" for a valid config that survives being written back, else the refusal.
std::string verdict(const std::string& text, const std::vector<std::string>& sets, int world_size) {
  std::string message = refusal(text, sets, world_size);
  if (!message.empty()) {
    for (const std::string& line : lines_of(message)) {
      REQUIRE_FALSE(line.empty());
      REQUIRE(line.size() < 2000);
      REQUIRE_FALSE(has_control_character(line));
    }
    return message;
  }
  const RunConfig config = load(text, sets, world_size);
  REQUIRE(config.num_micro_batches() >= 1);
  REQUIRE(dump_config(load(dump_config(config))) == dump_config(config));
  return "";
}

TEST_CASE("thousands of mutants of tiny.yaml are each accepted or refused with a reason") {
  std::ifstream file(HPT_SOURCE_DIR "/configs/tiny.yaml");
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string tiny = stream.str();
  REQUIRE(verdict(tiny, {}, 8) == "");
  const std::uint64_t seed = number_of("HPT_FUZZ_SEED", 101);
  const std::uint64_t num_rounds = number_of("HPT_FUZZ_DRAWS", 6000);
  std::uint64_t num_accepted = 0;
  for (std::uint64_t round = 0; round < num_rounds; ++round) {
    Draws draws(seed, round);
    std::string text = tiny;
    const std::size_t num_mutations = 1 + draws.below(4);
    for (std::size_t i = 0; i < num_mutations; ++i) mutate(text, draws);
    CAPTURE(seed, round);
    num_accepted += verdict(text, {}, round % 2 == 0 ? 8 : 0).empty() ? 1 : 0;
  }
  CHECK(num_accepted > num_rounds / 50);
  CHECK(num_accepted < num_rounds * 4 / 5);
}

TEST_CASE("thousands of random --set texts are each accepted or refused with a reason") {
  const std::uint64_t seed = number_of("HPT_FUZZ_SEED", 102);
  const std::uint64_t num_rounds = number_of("HPT_FUZZ_DRAWS", 4000);
  std::uint64_t num_accepted = 0;
  for (std::uint64_t round = 0; round < num_rounds; ++round) {
    Draws draws(seed, round);
    const Field& field = schema()[draws.below(schema().size())];
    std::string set = field.key() + "=" + (draws.below(2) == 0 ? "" : field.dump(load(kSmallConfig)));
    const std::size_t num_snippets = draws.below(3);
    for (std::size_t i = 0; i < num_snippets; ++i) {
      set.insert(draws.below(8) == 0 ? draws.below(set.size()) : set.size(),
                 snippets()[draws.below(snippets().size())]);
    }
    CAPTURE(set);
    num_accepted += verdict(kSmallConfig, {set}, 0).empty() ? 1 : 0;
  }
  CHECK(num_accepted > num_rounds / 10);
  CHECK(num_accepted < num_rounds * 9 / 10);
}

}  // namespace
}  // namespace hpt::test
