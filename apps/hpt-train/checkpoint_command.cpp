#include "checkpoint_command.h"

#include <cstdio>
#include <memory>
#include <string>
#include <tuple>

#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/find_checkpoint.h"
#include "checkpoint/hf_convert.h"
#include "checkpoint/verify.h"
#include "checkpoint_text.h"
#include "command_line.h"
#include "config/text.h"
#include "core/error.h"

namespace hpt {
namespace {

constexpr int kDifferent = 1;

struct InspectRequest {
  std::string path;
  bool json = false;
};

int run_inspect(const InspectRequest& request) {
  FileSystem& files = posix_file_system();
  const FoundCheckpoint found = find_checkpoint(files, request.path);
  const Manifest manifest = read_manifest(files, found.folder);
  print(request.json ? inspection_json(found, manifest) : inspection_text(found, manifest));
  return 0;
}

// With its line end where there is something to say.
std::string choice_line(const FoundCheckpoint& found) {
  const std::string text = choice_text(found);
  return text.empty() ? "" : text + "\n";
}

// A live run may take its oldest one away at any time.
template <typename Work>
auto while_it_lasts(FileSystem& files, const FoundCheckpoint& found, Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const Error&) {
    if (files.kind_of(found.folder) != FileKind::none) throw;
    fail(ErrorKind::usage,
         "{}: was taken away while it was read, as a live run does that keeps fewer (checkpoint.keep)",
         found.folder);
  }
}

int run_verify(const std::string& path) {
  FileSystem& files = posix_file_system();
  const FoundCheckpoint found = find_checkpoint(files, path);
  print(choice_line(found));
  const Verification verification = while_it_lasts(files, found, [&] {
    Verification read = verify_checkpoint(files, found.folder, [] {});
    for (const std::string& warning : read.warnings) std::fprintf(stderr, "%s\n", warning.c_str());
    if (!read.faults.empty()) throw Error(ErrorKind::runtime, joined(read.faults, "\n"));
    return read;
  });
  print(format("whole: {} in {}\n", counted(verification.num_bytes, "byte"),
               counted(verification.num_files, "file")));
  return 0;
}

struct DiffRequest {
  std::string first;
  std::string second;
};

int run_diff(const DiffRequest& request) {
  FileSystem& files = posix_file_system();
  const auto find = [&](const std::string& path) {
    FoundCheckpoint found = find_checkpoint(files, path);
    print(choice_line(found));
    return found;
  };
  const auto open = [&](const FoundCheckpoint& found) {
    return OpenCheckpoint{found.folder, read_manifest(files, found.folder)};
  };
  const FoundCheckpoint one = find(request.first);
  const FoundCheckpoint other = find(request.second);
  const auto [first, second, diff] = while_it_lasts(files, one, [&] {
    return while_it_lasts(files, other, [&] {
      OpenCheckpoint a = open(one);
      OpenCheckpoint b = open(other);
      CheckpointDiff found = diff_checkpoints(files, a, b);
      return std::tuple(std::move(a), std::move(b), std::move(found));
    });
  });
  print(diff_text(first, second, diff));
  return diff.is_equal() ? 0 : kDifferent;
}

struct ConvertRequest {
  std::string from;
  std::string out;
  std::int64_t most_shard_bytes = kHfShardBytes;
};

std::string converted_line(const std::string& out, const Converted& made) {
  return format("{}: {}, {} in {}\n", out, counted(made.num_tensors, "tensor"),
                counted(made.num_bytes, "byte"), counted(made.num_files, "file"));
}

int run_export(const ConvertRequest& request) {
  FileSystem& files = posix_file_system();
  const FoundCheckpoint found = find_checkpoint(files, request.from);
  const Converted made = while_it_lasts(files, found, [&] {
    return export_hf(files, {found.folder, read_manifest(files, found.folder)}, request.out,
                     request.most_shard_bytes);
  });
  print(choice_line(found) + converted_line(request.out, made));
  return 0;
}

int run_import(const ConvertRequest& request) {
  const Converted made = import_hf(posix_file_system(), request.from, request.out);
  print(converted_line(request.out, made));
  return 0;
}

CLI::Option* add_checkpoint_path(CLI::App& command, const std::string& name, std::string& path) {
  return require_path(command.add_option(name, path,
                                         "A checkpoint's folder, or the run's: then its newest checkpoint"))
      ->required();
}

void add_inspect(CLI::App& checkpoint, std::function<int()>& run) {
  const auto request = std::make_shared<InspectRequest>();
  CLI::App* command = checkpoint.add_subcommand("inspect", "Show what a checkpoint holds");
  add_checkpoint_path(*command, "checkpoint", request->path);
  command->add_flag("--json", request->json, "One line of JSON, with every tensor");
  command->callback([&run, request] { run = run_by_one([request] { return run_inspect(*request); }); });
}

void add_verify(CLI::App& checkpoint, std::function<int()>& run) {
  const auto path = std::make_shared<std::string>();
  CLI::App* command = checkpoint.add_subcommand("verify", "Read every byte of a checkpoint: is it whole?");
  add_checkpoint_path(*command, "checkpoint", *path);
  command->callback([&run, path] { run = run_by_one([path] { return run_verify(*path); }); });
}

void add_diff(CLI::App& checkpoint, std::function<int()>& run) {
  const auto request = std::make_shared<DiffRequest>();
  CLI::App* command = checkpoint.add_subcommand(
      "diff",
      "Compare two checkpoints, written in whatever layouts; exit code 0 where they are equal, else 1");
  add_checkpoint_path(*command, "first", request->first);
  add_checkpoint_path(*command, "second", request->second);
  command->callback([&run, request] { run = run_by_one([request] { return run_diff(*request); }); });
}

void add_export(CLI::App& checkpoint, std::function<int()>& run) {
  const auto request = std::make_shared<ConvertRequest>();
  CLI::App* command = checkpoint.add_subcommand(
      "export-hf",
      "Make a folder of a checkpoint's weights that Hugging Face's transformers reads as a GPT-2");
  add_checkpoint_path(*command, "checkpoint", request->from);
  require_path(command->add_option("out", request->out, "The folder to make"))->required();
  add_bytes(*command, "--max-shard-bytes", request->most_shard_bytes,
            "Start another file where a tensor would make one larger than this (5G)");
  command->callback([&run, request] { run = run_by_one([request] { return run_export(*request); }); });
}

void add_import(CLI::App& checkpoint, std::function<int()>& run) {
  const auto request = std::make_shared<ConvertRequest>();
  CLI::App* command = checkpoint.add_subcommand(
      "import-hf", "Make a checkpoint, for checkpoint.init_from, of a Hugging Face folder with a GPT-2");
  require_path(command->add_option("folder", request->from, "With config.json and model.safetensors"))
      ->required();
  require_path(command->add_option("out", request->out, "The checkpoint's folder, to be made"))->required();
  command->callback([&run, request] { run = run_by_one([request] { return run_import(*request); }); });
}

}  // namespace

void add_checkpoint_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* checkpoint = app.add_subcommand("checkpoint", "Work on saved runs");
  checkpoint->require_subcommand(1);
  add_inspect(*checkpoint, run);
  add_verify(*checkpoint, run);
  add_diff(*checkpoint, run);
  add_export(*checkpoint, run);
  add_import(*checkpoint, run);
}

}  // namespace hpt
