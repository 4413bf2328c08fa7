// `hpt-train checkpoint inspect | verify | diff | export-hf | import-hf`: work on saved runs.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace hpt {

// Adds the sub-command to `app`. Where the command line asks for it, parsing sets `run`, which does the work,
// prints on stdout and returns the exit code; what is wrong is thrown as Error.
void add_checkpoint_command(CLI::App& app, std::function<int()>& run);

}  // namespace hpt
