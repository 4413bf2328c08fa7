// Words of the command line that hpt-train refuses: one line, exit code 2, before anything else is looked at.
#include <catch2/catch.hpp>

#include "e2e/run_binary.h"

using namespace e2e;

namespace {

// `line` is all that stderr says.
void check_refused(const std::vector<std::string>& words, const std::string& line) {
  const Outcome outcome = run({hpt_train(words)});
  INFO(line);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err == line + "\n");
}

void check_wrong_words(const std::vector<std::string>& words, const std::string& fault) {
  check_refused(words, "command line: " + fault + " (see hpt-train --help)");
}

}  // namespace

TEST_CASE("the number of local ranks is decimal, as in a config") {
  for (const std::string count : {"0x2", "1e1", "2.0", " 2", "two", "0", "-1", "1025", "4k", "nan", "1_0"})
    check_wrong_words({"--config", "c.yaml", "--local", count},
                      "--local: found " + count + ", but it must be a whole number from 1 to 1024");
  check_wrong_words({"--config", "c.yaml", "--local", ""},
                    "--local: found '', but it must be a whole number from 1 to 1024");
  const Outcome outcome =
      run({hpt_train({"--config", HPT_SOURCE_DIR "/configs/tiny.yaml", "--local", "010"})});
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.count_err_lines(
            "--local 10: parallel: tp 2 * cp 1 * pp 2 * dp 2 = 8 ranks, but the world has 10") == 1);
}

TEST_CASE("what is known but not built yet is refused by its name") {
  check_wrong_words({"plan", "--config", "a", "--cluster", "b"}, "plan is not supported yet");
  check_wrong_words({"bench"}, "bench is not supported yet");
}

TEST_CASE("an unknown option or command is named, with the nearest known one if it is near") {
  check_wrong_words({"--confg", "c.yaml"}, "--confg: unknown option; did you mean --config?");
  check_wrong_words({"--confg=c.yaml"}, "--confg: unknown option; did you mean --config?");
  check_wrong_words({"-config", "c.yaml"}, "-config: unknown option; did you mean --config?");
  check_wrong_words({"--config", "c.yaml", "--verbose"}, "--verbose: unknown option");
  check_wrong_words({"--config", "c.yaml", "--x\ny"}, "--x\\ny: unknown option");
  check_wrong_words({"dta", "inspect", "f"}, "dta: unknown command; did you mean data?");
  check_wrong_words({"--config", "c.yaml", "extra"}, "extra: unknown command");
  check_wrong_words({""}, "'': unknown command");
  check_wrong_words({"data", "inspct", "f"}, "inspct: unknown command; did you mean inspect?");
  check_wrong_words({"data", "inspect", "f", "g"}, "g: unexpected argument");
  check_wrong_words({"data", "inspect", "--jsno", "f"}, "--jsno: unknown option; did you mean --json?");
  check_wrong_words({"data", "pack", "--inptu", "a", "--output", "b"},
                    "--inptu: unknown option; did you mean --input?");
}

TEST_CASE("an option of training beside another command is refused, not ignored") {
  const std::string fault = ": an option of training, which the command data does not take";
  check_wrong_words({"--config", "c.yaml", "data", "inspect", "f"}, "--config" + fault);
  check_wrong_words({"--set", "run.steps=1", "data", "inspect", "f"}, "--set" + fault);
  check_wrong_words({"--local", "2", "data", "inspect", "f"}, "--local" + fault);
  check_wrong_words({"data", "inspect", "f", "--config", "c.yaml"}, "--config: unknown option");
}

TEST_CASE("an option that is given empty is refused, not taken for one that is not given") {
  const TempFolder folder;
  write_file(
      folder / "c.yaml",
      "run: {name: t, steps: 1}\nmodel: {layers: 1, hidden: 4, heads: 1, seq_length: 4, vocab_size: 9}\n"
      "batch: {global: 1}\noptimizer: {lr: 1}\ndata: {train: none.bin}\n");
  const std::string config = folder / "c.yaml";
  check_refused({"--config", config, "--device", ""},
                "--device '': run.device: found empty text, but it must be one of auto, cpu, cuda");
  check_refused({"--config", config, "--resume", ""},
                "--resume '': checkpoint.resume: found empty text, but it must be auto, never or the folder "
                "of a checkpoint, 1 to 4095 bytes "
                "on one line");
  check_refused({"--config", ""}, "--config: the path of a YAML file is required");
  check_wrong_words({}, "--config is required");
}

TEST_CASE("a command that no peers help runs once, however many processes a launcher starts") {
  const TempFolder folder;
  write_file(folder / "text", "once\n");
  const std::vector<std::string> pack = hpt_train({"data", "pack", "--input", "text", "--output", "t.bin"});
  const Outcome outcome = run({under_mpirun(3, pack), {}, folder.path()});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  CHECK(std::count(outcome.out.begin(), outcome.out.end(), '\n') == 1);
}

TEST_CASE("a signal ends a command that saves nothing at once") {
  const TempFolder folder;
  write_file(folder / "text", "");
  std::filesystem::resize_file(folder / "text", std::uintmax_t{2} << 30);
  Process process({hpt_train({"data", "pack", "--input", "text", "--output", "t.bin"}), {}, folder.path()});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  process.send(SIGTERM);
  CHECK(process.wait().exit_code == 128 + SIGTERM);
}

TEST_CASE("help that can't be written is an error") {
  const Outcome outcome = run({{"sh", "-c", std::string(HPT_BINARY) + " --help >/dev/full"}});
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.err == "standard output: can't write to it: No space left on device\n");
}
