#include "command_line.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "comm/launch/alone.h"
#include "config/nearest.h"
#include "config/numbers.h"
#include "config/text.h"
#include "core/error.h"

namespace hpt {
namespace {

[[noreturn]] void refuse(const std::string& fault) {
  throw CLI::ParseError(fault, CLI::ExitCodes::ValidationError);
}

std::string word_shown(const std::string& word) {
  return word.empty() ? "''" : shown(word);
}

std::string not_expected(const std::string& option, const std::string& word, const std::string& right) {
  return format("{}: found {}, but it must be {}", option, word_shown(word), right);
}

// The command that the words reached, from the program itself down.
std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  std::vector<const CLI::App*> commands = {&app};
  while (!commands.back()->get_subcommands().empty())
    commands.push_back(commands.back()->get_subcommands().front());
  return commands;
}

std::vector<std::string> subcommand_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string fault_of_stray(const CLI::App& command, const std::string& word) {
  constexpr int kStillMeant = 2;  // letters
  const bool is_option = word.size() > 1 && word[0] == '-';
  const std::string name = is_option ? word.substr(0, word.find('=')) : word;
  const std::vector<std::string> known = is_option ? option_names(command) : subcommand_names(command);
  const char* fault = is_option       ? "unknown option"
                      : known.empty() ? "unexpected argument"
                                      : "unknown command";
  const std::string near = nearest_word(name, known);
  const bool is_near = !near.empty() && edit_distance(name, near) <= kStillMeant;
  return format("{}: {}{}", word_shown(name), fault, is_near ? format("; did you mean {}?", near) : "");
}

}  // namespace

CLI::Option* add_count(CLI::App& command, const std::string& name, int& value, int most,
                       const std::string& about) {
  const auto read = [name, &value, most](const std::string& word) {
    const std::optional<WholeNumber> number = read_whole(word);
    if (!number || *number < 1 || *number > most)
      refuse(not_expected(name, word, format("a whole number from 1 to {}", most)));
    value = static_cast<int>(*number);
  };
  return command.add_option_function<std::string>(name, read, about)->type_name("N");
}

CLI::Option* add_bytes(CLI::App& command, const std::string& name, std::int64_t& value,
                       const std::string& about) {
  const auto read = [name, &value](const std::string& word) {
    constexpr std::int64_t kMost = std::int64_t{1} << 50;
    const std::optional<WholeNumber> number = read_whole(word);
    if (!number || *number < 1 || *number > kMost)
      refuse(not_expected(name, word, "a number of bytes from 1 on (such as 500M, 5G or 4Gi)"));
    value = static_cast<std::int64_t>(*number);
  };
  return command.add_option_function<std::string>(name, read, about)->type_name("BYTES");
}

CLI::Option* add_share(CLI::App& command, const std::string& name, double& value, const std::string& about) {
  const auto read = [name, &value](const std::string& word) {
    const RealRead number = read_real(word);
    if (number.outcome != RealRead::Outcome::ok || number.value <= 0 || number.value >= 1)
      refuse(not_expected(name, word, "a number > 0 and < 1"));
    value = number.value;
  };
  return command.add_option_function<std::string>(name, read, about)
      ->type_name("SHARE")
      ->default_str(shortest_text(value));
}

CLI::Option* require_path(CLI::Option* option) {
  return option->type_name("FILE")->check(CLI::Validator(
      [](const std::string& path) { return path.empty() ? "found '', but it must be a path" : ""; }, ""));
}

void add_command_to_come(CLI::App& app, const std::string& name) {
  app.add_subcommand(name)->group("")->preparse_callback(
      [name](std::size_t) { refuse(name + " is not supported yet"); });
}

void refuse_options_of_training(const CLI::App& app) {
  if (app.get_subcommands().empty()) return;
  for (const CLI::Option* option : app.get_options())
    if (option->count() > 0)
      refuse(format("{}: an option of training, which the command {} does not take", option->get_name(),
                    app.get_subcommands().front()->get_name()));
}

std::function<int()> run_by_one(std::function<int()> command) {
  return
      [command = std::move(command)] { return run_alone([&](const LaunchedWorld&) { return command(); }); };
}

void print(const std::string& text) {
  errno = 0;
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return;
  if (errno != EPIPE)
    fail(ErrorKind::runtime, "standard output: can't write to it: {}", std::strerror(errno));
}

std::string fault_of_words(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<const CLI::App*> commands = commands_of(app);
  const bool lacks = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  const bool has_strays = lacks || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  // What is required may stand there, but misspelt.
  for (const CLI::App* command : commands)
    for (const std::string& word : command->remaining())
      if (has_strays && word != "--") return fault_of_stray(*command, word);
  const std::vector<std::string> subcommands = subcommand_names(*commands.back());
  if (lacks && commands.size() > 1 && !subcommands.empty())
    return format("{}: a command must follow: {}", commands.back()->get_name(), joined(subcommands));
  return shown(error.what());
}

}  // namespace hpt
