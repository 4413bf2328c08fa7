#include "data_command.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "command_line.h"
#include "core/error.h"
#include "data/inspect.h"
#include "data/pack.h"
#include "data/text_baseline.h"

namespace hpt {
namespace {

using Json = nlohmann::ordered_json;

int shown_all(const std::string& text) {
  print(text);
  return 0;
}

std::string line_of(const PackedFile& file) {
  return format("{}: {} from {} in {}\n", file.path, counted(file.num_tokens, "token"),
                counted(file.num_bytes, "byte"), counted(file.num_documents, "document"));
}

int run_pack(const PackRequest& request) {
  const PackResult result = pack(request);
  return shown_all(line_of(result.train) + (result.valid ? line_of(*result.valid) : ""));
}

struct InspectRequest {
  std::string file;
  std::string valid;
  bool json = false;
};

// One line of ASCII; a path that is not UTF-8 is shown with what is not replaced.
std::string line_of(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

Json to_json(const TokenFileReport& report) {
  const TokenFileInfo& info = report.info;
  const auto or_null = [](std::int64_t value, std::int64_t unknown) {
    return value == unknown ? Json(nullptr) : Json(value);
  };
  return {{"path", report.path},
          {"format", token_format_name(info.format)},
          {"dtype", token_type_name(info.token_bytes)},
          {"tokens", info.num_tokens},
          {"vocab_size", or_null(info.vocab_size, 0)},
          {"largest_token", or_null(report.largest_token, -1)},
          {"tokenizer", info.tokenizer.empty() ? Json(nullptr) : Json(info.tokenizer)},
          {"documents", or_null(report.num_documents, -1)},
          {"checksum", info.format == TokenFormat::hpt ? Json("matches") : Json(nullptr)}};
}

int run_inspect(const InspectRequest& request) {
  const TokenFileReport report = inspect_token_file(request.file);
  if (request.valid.empty()) return shown_all(request.json ? line_of(to_json(report)) : to_text(report));

  const TokenFileReport valid = inspect_token_file(request.valid);
  const TextBaseline baseline = text_baseline(TokenFile(request.file), TokenFile(request.valid));
  if (!request.json)
    return shown_all(to_text(report) + to_text(valid) +
                     format("validation loss over {}: unigram {:.4f}, bigram {:.4f} nats a token\n",
                            counted(baseline.num_predicted, "token"), baseline.unigram, baseline.bigram));
  Json json = to_json(report);
  json["valid"] = to_json(valid);
  json["predicted_tokens"] = baseline.num_predicted;
  json["unigram_loss"] = baseline.unigram;
  json["bigram_loss"] = baseline.bigram;
  return shown_all(line_of(json));
}

void add_pack(CLI::App& data, std::function<int()>& run) {
  const auto request = std::make_shared<PackRequest>();
  CLI::App* command = data.add_subcommand("pack", "Make token files from text files, each one document");
  require_path(command->add_option("--input", request->inputs, "Text files, UTF-8 or not"))->required();
  require_path(command->add_option("--output", request->output, "The token file to make"))->required();
  command->add_option("--tokenizer", request->tokenizer, "bytes")->capture_default_str();
  CLI::Option* valid = require_path(
      command->add_option("--valid", request->valid, "Hold out the last bytes into this token file"));
  add_share(*command, "--valid-share", request->valid_share, "Share of all bytes to hold out")->needs(valid);
  command->callback([&run, request] { run = run_by_one([request] { return run_pack(*request); }); });
}

void add_inspect(CLI::App& data, std::function<int()>& run) {
  const auto request = std::make_shared<InspectRequest>();
  CLI::App* command =
      data.add_subcommand("inspect", "Check a token file from end to end and show what it holds");
  require_path(command->add_option("file", request->file, "The token file"))->required();
  require_path(command->add_option("--valid", request->valid,
                                   "Also tell the loss of a unigram and a bigram model on this token file"));
  command->add_flag("--json", request->json, "One line of JSON");
  command->callback([&run, request] { run = run_by_one([request] { return run_inspect(*request); }); });
}

}  // namespace

void add_data_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* data = app.add_subcommand("data", "Text to token files");
  data->require_subcommand(1);
  add_pack(*data, run);
  add_inspect(*data, run);
}

}  // namespace hpt
