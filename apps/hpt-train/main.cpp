// hpt-train: arguments -> one call -> exit code. One file a command; none decides anything itself.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>

#include "core/error.h"
#include "data_command.h"
#include "train_command.h"

namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int run_command(int argc, char** argv) {
  CLI::App app("Trains GPT models under tensor, pipeline and data parallelism from one YAML file.",
               "hpt-train");
  app.set_version_flag("--version", "hpt-train " HPT_VERSION);
  std::function<int()> run;
  hpt::add_train_command(app, run);
  hpt::add_data_command(app, run);
  try {
    app.parse(argc, argv);
    return run();
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& wrong) {
    std::fprintf(stderr, "command line: %s (see hpt-train --help)\n", wrong.what());
    return kUsage;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed console never stops training
  try {
    return run_command(argc, argv);
  } catch (const hpt::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.kind() == hpt::ErrorKind::usage ? kUsage : kFailed;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hpt-train: %s\n", error.what());
    return kFailed;
  }
}
