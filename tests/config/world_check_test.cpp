#include <catch2/catch.hpp>

#include "config/small_config.h"

namespace hpt::test {
namespace {

// The small config: tp 2, pp 2, dp auto; heads 4, layers 4, global batch 12.
TEST_CASE("dp auto is the world over the other degrees") {
  CHECK(load_set({}, 8).parallel.dp == 2);
  CHECK(load_set({}, 4).parallel.dp == 1);
  CHECK(load_set({"parallel.dp=auto"}, 12).parallel.dp == 3);
  CHECK(load_set({"parallel.cp=2"}, 8).parallel.dp == 1);
}

TEST_CASE("without a world, dp auto is 1 and any product is right") {
  CHECK(load_set({}).parallel.dp == 1);
  CHECK(load_set({"parallel.dp=3"}).parallel.dp == 3);
}

TEST_CASE("a world that the other degrees do not divide is refused with layouts that would fit") {
  CHECK(refusal_of_set({}, 6) ==
        "--world 6: parallel.dp: auto finds no whole number, since tp 2 * cp 1 * pp 2 = 4 does not divide "
        "the world's 6 "
        "ranks (these would fit: tp 2 pp 3 dp 1, tp 1 pp 2 dp 3, tp 2 pp 1 dp 3, tp 1 pp 3 dp 2)");
}

TEST_CASE("a product that is not the world is refused with product, world and layouts that would fit") {
  CHECK(refusal_of_set({"parallel.dp=1"}, 3) ==
        "--world 3: parallel: tp 2 * cp 1 * pp 2 * dp 1 = 4 ranks, but the world has 3 (these would fit: tp "
        "1 pp 3 dp 1, "
        "tp 1 pp 1 dp 3)");
  CHECK(refusal_of_set({"parallel.dp=4"}, 8)
            .starts_with("--world 8: parallel: tp 2 * cp 1 * pp 2 * dp 4 = 16 ranks"));
}

TEST_CASE("every layout that is offered is accepted") {
  int num_offered = 0;
  for (int world = 1; world <= 64; ++world) {
    const std::string message = refusal_of_set({"parallel.dp=5", "batch.global=60"}, world);
    if (world == 20) {
      CHECK(message == "");
      continue;
    }
    const std::size_t begin = message.find("(these would fit: ");
    if (begin == std::string::npos) {
      CHECK(message.find("(no layout of ") != std::string::npos);
      continue;
    }
    std::string offers = message.substr(begin + 18);
    for (char& c : offers) c = c == ',' || c == ')' ? ' ' : c;
    std::istringstream words(offers);
    std::string axis;
    std::string degree;
    std::vector<std::string> sets = {"batch.global=60"};
    while (words >> axis >> degree) {
      sets.push_back("parallel." + axis + "=" + degree);
      if (axis != "dp") continue;
      CHECK(refusal_of_set(sets, world) == "");
      ++num_offered;
    }
  }
  CHECK(num_offered > 50);
}

TEST_CASE("a layout that would make too many micro-batches is not offered") {
  const std::string message = refusal_of_set({"parallel.dp=5", "batch.global=131072"}, 4);
  CHECK(message.find("dp 2") != std::string::npos);
  CHECK(message.find("dp 1") == std::string::npos);
}

TEST_CASE("a world that no layout fits is told so") {
  CHECK(refusal_of_set({}, 7).find("(no layout of 7 ranks fits this model and batch)") != std::string::npos);
}

TEST_CASE("the mismatch and the faults of the batch are told together") {
  const std::vector<std::string> lines = lines_of(refusal_of_set({"parallel.dp=5"}, 8));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].starts_with("--world 8: "));
  CHECK(lines[1].starts_with(
      "c.yaml:14:11: batch.global: 12 is not a multiple of batch.micro 1 * parallel.dp 5"));
}

TEST_CASE("a dp that could not be resolved takes no part in the batch equation") {
  CHECK(lines_of(refusal_of_set({"batch.micro=5"}, 6)).size() == 1);
  CHECK(lines_of(refusal_of_set({"parallel.tp=x", "batch.micro=5"}, 6)).size() == 1);
}

TEST_CASE("degrees as large as they may be do not overflow against the world") {
  const std::string message =
      refusal_of_set({"parallel.tp=1Mi", "parallel.pp=1Mi", "parallel.cp=1Mi", "parallel.dp=1Mi"}, 8);
  CHECK(message.find("= 1208925819614629174706176 ranks, but the world has 8") != std::string::npos);
}

}  // namespace
}  // namespace hpt::test
