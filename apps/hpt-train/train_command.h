// The default command: train from a config.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace hpt {

// Adds its options to `app` and sets `run` to what the command does when no sub-command was chosen.
void add_train_command(CLI::App& app, std::function<int()>& run);

}  // namespace hpt
