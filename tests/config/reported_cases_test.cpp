// Small cases of faults that users of other trainers reported, with their numbers; the rows' names are those
// of docs/proofs.md.
#include <catch2/catch.hpp>

#include "config/small_config.h"

namespace hpt::test {
namespace {

// E3: found late elsewhere, as a shape error of some kernel.
TEST_CASE(
    "5 heads on tp 2, 12 and 25 heads and an MLP of 66 that tp does not divide are refused by their keys") {
  const auto says = [](const std::vector<std::string>& sets, const std::string& words) {
    INFO(words);
    CHECK(refusal_of_set(sets).find("parallel.tp: " + words) != std::string::npos);
  };
  says({"model.hidden=40", "model.heads=5"}, "2 does not divide model.heads 5 (try 1, 5)");
  says({"model.hidden=48", "model.heads=12", "parallel.tp=8"}, "8 does not divide model.heads 12");
  says({"model.hidden=50", "model.heads=25", "parallel.tp=4"}, "4 does not divide model.heads 25");
  says({"model.ffn_hidden=66", "parallel.tp=4"}, "4 does not divide model.ffn_hidden 66 (try 1, 2, 3, 6");
}

// E9: YAML 1.1 takes 1e-4 for a text.
TEST_CASE("a learning rate of 1e-4 is one number in all its spellings, and refused as a quoted text") {
  for (const char* spelling : {"1e-4", "1E-4", ".0001", "1e-04", "1.0e-4", "0.0001", "+1e-4"}) {
    INFO(spelling);
    CHECK(load_set({std::string("optimizer.lr=") + spelling}).optimizer.lr == 1e-4);
    CHECK(load(with_key("optimizer.lr", spelling)).optimizer.lr == 1e-4);
  }
  CHECK(refusal(with_key("optimizer.lr", "\"1e-4\"")).find("optimizer.lr") != std::string::npos);
}

// X40: where nothing has to divide: layers, sequence and vocabulary.
TEST_CASE("layers, sequences and vocabularies of any size are accepted, whatever the degrees") {
  for (const char* layers : {"5", "6", "7"})
    for (const char* seq : {"1", "7", "17"})
      for (const char* vocab : {"1", "3", "61", "50257"})
        CHECK(refusal_of_set({"parallel.tp=4", "parallel.pp=4", std::string("model.layers=") + layers,
                              std::string("model.seq_length=") + seq,
                              std::string("model.vocab_size=") + vocab}) == "");
}

}  // namespace
}  // namespace hpt::test
