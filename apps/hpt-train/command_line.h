// What the commands share in reading their words: numbers as a config has them, what is not built yet, and
// one line for what is wrong.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

namespace hpt {

// A whole number in [1, most], decimal, as in a config.
CLI::Option* add_count(CLI::App& command, const std::string& name, int& value, int most,
                       const std::string& about);
// A number of bytes from 1 on, which may be written as a size (5G); `value` holds the default.
CLI::Option* add_bytes(CLI::App& command, const std::string& name, std::int64_t& value,
                       const std::string& about);
// A number between 0 and 1, neither of them, as in a config; `value` holds the default.
CLI::Option* add_share(CLI::App& command, const std::string& name, double& value, const std::string& about);
// Refuses an empty path, which would otherwise read as one that was not given.
CLI::Option* require_path(CLI::Option* option);

// Commands that are known but not built yet: parsing refuses them by name.
void add_command_to_come(CLI::App& app, const std::string& name);

// Refuses options of training beside another command, which would not read them.
void refuse_options_of_training(const CLI::App& app);

// A command that is run by the first process of a job, whatever started it; it returns an exit code.
std::function<int()> run_by_one(std::function<int()> command);

// To standard output, whole, or an Error of kind runtime; a reader that has seen enough and left is none.
void print(const std::string& text);

// What follows "command line: " when parsing `app` has thrown `error`.
std::string fault_of_words(const CLI::App& app, const CLI::ParseError& error);

}  // namespace hpt
