// Mutants of a manifest and of a shard's header: each is refused with one plain line, or sound.
//   HPT_FUZZ_SEED=<seed> HPT_FUZZ_DRAWS=100000 checkpoint_test "thousands of*"
// looks at others, or at more.
#include <catch2/catch.hpp>

#include "checkpoint/crafted.h"
#include "core/box_runs.h"
#include "support/mutant.h"

namespace hpt::testing {
namespace {

const std::vector<std::string> kSnippets = {"{",
                                            "}",
                                            "[",
                                            "]",
                                            ",",
                                            ":",
                                            "\"",
                                            "\\",
                                            "\\u0000",
                                            "\\ud800",
                                            "null",
                                            "true",
                                            "-1",
                                            "0",
                                            "1e999",
                                            "1.5",
                                            "-0",
                                            "9007199254740993",
                                            "9223372036854775807",
                                            "9223372036854775808",
                                            "18446744073709551615",
                                            "4294967296",
                                            "99999999999999999999999",
                                            "[[",
                                            "{\"a\":",
                                            "\"a\":1,",
                                            "\"dtype\":\"F64\",",
                                            "\"shape\":[3,0],",
                                            "\"file\":1,",
                                            "\"data_offsets\":[0,96]",
                                            "shard-00001.safetensors",
                                            "../",
                                            "/",
                                            "\n",
                                            "\xFF",
                                            "\xC3\xA9",
                                            "\x1b[2J",
                                            " ",
                                            std::string(1, '\0')};

std::string mutant(std::string text, Draws& draws) {
  const std::size_t num_mutations = 1 + draws.below(3);
  for (std::size_t i = 0; i < num_mutations; ++i) mutate(text, kSnippets, draws);
  return text;
}

// Element by element, where there are not too many: each in one box.
void require_covered(const StoredTensor& tensor) {
  constexpr std::int64_t kMost = 10'000;
  if (tensor.shape.num_elements() > kMost) return;
  std::vector<int> count(static_cast<std::size_t>(tensor.shape.num_elements()), 0);
  for (const StoredBox& stored : tensor.boxes)
    for_each_run(stored.box, std::array{placed_whole(tensor.shape)},
                 [&](const std::array<std::int64_t, 1>& places, std::int64_t length) {
                   for (std::int64_t i = 0; i < length; ++i)
                     ++count.at(static_cast<std::size_t>(places[0] + i));
                 });
  REQUIRE(std::all_of(count.begin(), count.end(), [](int times) { return times == 1; }));
}

void require_sound(const Manifest& manifest) {
  for (const StoredTensor& tensor : manifest.tensors) {
    require_covered(tensor);
    for (const StoredBox& stored : tensor.boxes) {
      const ShardFile& file = manifest.files.at(static_cast<std::size_t>(stored.file));
      const auto bytes = static_cast<std::uint64_t>(stored.box.num_elements()) * size_of(tensor.dtype);
      REQUIRE(stored.begin >= file.header_bytes);
      REQUIRE(stored.begin + bytes <= file.bytes);
    }
  }
  REQUIRE(to_text(parse_manifest(to_text(manifest), "m")) == to_text(manifest));
}

TEST_CASE("thousands of mutants of a manifest are each sound or refused with a plain line") {
  const std::uint64_t seed = number_of("HPT_FUZZ_SEED", 201);
  const std::uint64_t num_rounds = number_of("HPT_FUZZ_DRAWS", 8000);
  const std::string good = to_text(small_manifest());
  const std::string body = good.substr(0, good.rfind("  \"checksum\""));
  std::uint64_t num_accepted = 0;
  for (std::uint64_t round = 0; round < num_rounds; ++round) {
    Draws draws(seed, round);
    CAPTURE(seed, round);
    // Now and then the checksum is that of what was there before.
    const bool is_sealed = !draws.one_in(8);
    const std::string text = is_sealed ? sealed(mutant(body, draws)) : mutant(good, draws);
    const std::string told = refusal_of_manifest(text);
    REQUIRE(is_plain_line(told));
    if (!told.empty()) continue;
    REQUIRE((is_sealed || text == good));
    require_sound(parse_manifest(text, "m"));
    ++num_accepted;
  }
  CHECK(num_accepted > num_rounds / 50);
  CHECK(num_accepted < num_rounds * 4 / 5);
}

TEST_CASE("thousands of mutants of a shard's header are each sound or refused with a plain line") {
  const std::uint64_t seed = number_of("HPT_FUZZ_SEED", 202);
  const std::uint64_t num_rounds = number_of("HPT_FUZZ_DRAWS", 8000);
  constexpr std::size_t kDataBytes = 120;
  const std::string good =
      make_header({{"a.weight[0:4, 0:6]", DType::f32, {4, 6}, 0, 96}, {"b[0:3]", DType::f64, {3}, 96, 120}},
                  {{"format", "pt"}, {"step", "4"}});
  std::uint64_t num_accepted = 0;
  for (std::uint64_t round = 0; round < num_rounds; ++round) {
    Draws draws(seed, round);
    CAPTURE(seed, round);
    // Now and then the length stays what it was.
    std::string file = draws.one_in(8) ? mutant(good + std::string(kDataBytes, 'x'), draws)
                                       : safetensors_file(mutant(good.substr(8), draws), kDataBytes);
    const std::string told = refusal_of_header(file);
    REQUIRE(is_plain_line(told));
    if (!told.empty()) continue;
    FaultDisk disk;
    put_file(disk, "f", file);
    FaultFileSystem files(disk);
    const Header header = read_header(*files.open("f"), "f");
    std::uint64_t end = 0;
    for (const HeaderEntry& entry : header.entries) {
      REQUIRE(entry.begin == end);
      REQUIRE(entry.end - entry.begin ==
              static_cast<std::uint64_t>(entry.shape.num_elements()) * size_of(entry.dtype));
      end = entry.end;
    }
    REQUIRE(header.data_begin + end == file.size());
    ++num_accepted;
  }
  CHECK(num_accepted > num_rounds / 50);
  CHECK(num_accepted < num_rounds * 4 / 5);
}

}  // namespace
}  // namespace hpt::testing
