// `hpt-train data`, as typed.
#include <catch2/catch.hpp>

#include "e2e/run_binary.h"

using namespace e2e;
using Catch::Matchers::Contains;

TEST_CASE("data pack and inspect work on real files and tell the loss to beat") {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 500; ++i) text += "the cat sat on the mat. ";
  write_file(folder / "a.txt", text);
  write_file(folder / "b.txt", text);
  const Outcome packed = run({hpt_train({"data", "pack", "--input", "a.txt", "b.txt", "--output", "train.bin",
                                         "--valid", "valid.bin", "--valid-share", "0.1"}),
                              {},
                              folder.path()});
  REQUIRE(packed.exit_code == 0);
  CHECK(packed.out ==
        "train.bin: 21602 tokens from 21600 bytes in 2 documents\n"
        "valid.bin: 2401 tokens from 2400 bytes in 1 document\n");
  CHECK(packed.err.empty());

  const Outcome shown = run({hpt_train({"data", "inspect", "train.bin"}), {}, folder.path()});
  REQUIRE(shown.exit_code == 0);
  CHECK_THAT(shown.out, Contains("21602 of u16") && Contains("as text     the cat sat"));

  const Outcome compared =
      run({hpt_train({"data", "inspect", "train.bin", "--valid", "valid.bin", "--json"}), {}, folder.path()});
  REQUIRE(compared.exit_code == 0);
  const auto report = nlohmann::json::parse(compared.out);
  CHECK(report["tokens"] == 21602);
  CHECK(report["valid"]["documents"] == 1);
  CHECK(report["bigram_loss"] < report["unigram_loss"]);
  CHECK(report["unigram_loss"] < 3);
}

TEST_CASE("the share to hold out is read as a config reads numbers") {
  const TempFolder folder;
  write_file(folder / "text", std::string(1000, 'x'));
  for (const char* share : {"1e-1", ".1", "0.10"}) {
    const Outcome packed = run({hpt_train({"data", "pack", "--input", "text", "--output", "out.bin",
                                           "--valid", "valid.bin", "--valid-share", share}),
                                {},
                                folder.path()});
    INFO(share << packed.err);
    CHECK_THAT(packed.out, Contains("901 tokens from 900 bytes") && Contains("101 tokens from 100 bytes"));
  }
}

TEST_CASE("what is wrong with a data command is one line on stderr and exit code 2") {
  const TempFolder folder;
  write_file(folder / "text", "some text");
  write_file(folder / "odd.bin", "abc");
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& words) {
    const std::size_t files_before = static_cast<std::size_t>(std::distance(
        std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator()));
    const Outcome outcome = run({hpt_train(arguments), {}, folder.path()});
    INFO(words);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.count_err_lines(words) == 1);
    CHECK(outcome.count_err_lines("") == 1);
    CHECK(static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder.path()),
                                                 std::filesystem::directory_iterator())) == files_before);
  };
  refused({"data", "pack", "--input", "text", "--output", "text"}, "is also an input");
  refused({"data", "pack", "--input", "none", "--output", "out"}, "none: can't read it");
  refused({"data", "pack", "--output", "out"}, "--input");
  refused({"data", "pack", "--input", "text", "--output", "out", "--valid", "v", "--valid-share", "2"},
          "--valid-share");
  refused({"data", "pack", "--input", "text", "--output", "out", "--valid-share", "0.1"}, "--valid");
  refused({"data", "inspect", "odd.bin"}, "odd.bin: begins with no known magic and is 3 bytes long");
  refused({"data"}, "data: a command must follow: pack, inspect");
  for (const char* share : {"nan", "inf", "0x1p-1", "0", "1", "-0.1", "", "half", "0.5x"})
    refused({"data", "pack", "--input", "text", "--output", "out", "--valid", "v", "--valid-share", share},
            "--valid-share: found");
  refused({"data", "pack", "--input", "text", "--output", "out", "--valid", ""}, "--valid: found ''");
  refused({"data", "pack", "--input", "", "--output", "out"}, "--input: found ''");
  refused({"data", "inspect", "text", "--valid", ""}, "--valid: found ''");
}
