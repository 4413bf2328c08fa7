// `hpt-train generate`: text sampled from a saved run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace hpt {

// Adds the sub-command to `app`. Where the command line asks for it, parsing sets `run`, which does the work
// on every rank of the job, prints on rank 0's stdout and returns the exit code.
void add_generate_command(CLI::App& app, std::function<int()>& run);

}  // namespace hpt
