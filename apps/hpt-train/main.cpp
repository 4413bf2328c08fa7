// hpt-train: arguments -> one call -> exit code. One file a command; none decides anything itself.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <system_error>

#include "checkpoint_command.h"
#include "comm/launch/world.h"
#include "command_line.h"
#include "core/error.h"
#include "data_command.h"
#include "generate_command.h"
#include "train_command.h"

namespace {

constexpr int kFailed = 1;

// The next file opened would get the number of a standard stream that was closed, and our words with it.
void open_closed_streams() {
  for (const int stream : {0, 1, 2})
    if (fcntl(stream, F_GETFD) == -1 && errno == EBADF) open("/dev/null", O_RDWR);
}

// An OpenMP thread without work spins for milliseconds before it sleeps, and so takes the core from whoever
// has work to do. How long is read from the environment, and only before main: so the program starts once
// more, unless the user has chosen. Where it can't, threads spin longer, and that is all.
void bound_spinning(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "10000", 1);
  std::error_code unknown;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (!unknown) execv(program.c_str(), argv);
}

int run_command(int argc, char** argv) {
  CLI::App app("Trains GPT models under tensor, pipeline and data parallelism from one YAML file.",
               "hpt-train");
  app.set_version_flag("--version", "hpt-train " HPT_VERSION);
  std::function<int()> run;
  hpt::add_train_command(app, run);
  hpt::add_data_command(app, run);
  hpt::add_checkpoint_command(app, run);
  hpt::add_generate_command(app, run);
  for (const char* name : {"plan", "bench"}) hpt::add_command_to_come(app, name);
  try {
    app.parse(argc, argv);
    hpt::refuse_options_of_training(app);
    return run();
  } catch (const CLI::Success& asked) {  // --help, --version
    std::ostringstream text;
    app.exit(asked, text, text);
    hpt::print(text.str());
    return 0;
  } catch (const CLI::ParseError& wrong) {
    return hpt::refuse_job(
        hpt::format("command line: {} (see hpt-train --help)", hpt::fault_of_words(app, wrong)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  hpt::hold_stop_signals();
  bound_spinning(argv);
  open_closed_streams();
  std::signal(SIGPIPE, SIG_IGN);  // a closed console never stops training
  std::signal(SIGXFSZ, SIG_IGN);  // nor does a file that may not grow: writing to it fails, and that is told
  try {
    return run_command(argc, argv);
  } catch (const hpt::Error& error) {
    if (error.kind() == hpt::ErrorKind::usage) return hpt::refuse_job(error.what());
    std::fprintf(stderr, "%s\n", error.what());
    return kFailed;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hpt-train: %s\n", error.what());
    return kFailed;
  }
}
