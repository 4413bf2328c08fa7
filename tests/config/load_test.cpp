// Files, defaults, --set, options, writing back.
#include "config/load.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "config/config_source.h"
#include "config/schema.h"
#include "config/small_config.h"
#include "core/counter_rng.h"
#include "support/cost.h"
#include "support/paths.h"

namespace hpt::test {
namespace {

// A folder that is the working directory while it lives.
class WorkingFolder {
 public:
  WorkingFolder() : before_(std::filesystem::current_path()) {
    std::string name = (std::filesystem::temp_directory_path() / "hpt-config-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
    std::filesystem::current_path(path_);
  }
  ~WorkingFolder() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(path_);
  }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;
  static void write(const std::string& name, const std::string& text) { std::ofstream(name) << text; }

 private:
  std::filesystem::path before_;
  std::filesystem::path path_;
};

std::string refusal_of_file(const std::string& path) {
  ConfigRequest request;
  request.path = path;
  try {
    load_config(request);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    return error.what();
  }
  return "";
}

TEST_CASE("every default is the one that the interface promises") {
  const RunConfig c = load(kSmallConfig);
  CHECK(dump_config(c) ==
        "run:\n  name: \"t\"\n  dir: \"runs/t\"\n  device: auto\n  seed: 1234\n  steps: 10\n  threads: auto\n"
        "  precision: fp32\n  watchdog_s: 600\n  check_replicas_every: 0\n"
        "model:\n  family: gpt\n  layers: 4\n  hidden: 32\n  heads: 4\n  kv_heads: 4\n  ffn_hidden: 128\n"
        "  seq_length: 16\n  vocab_size: 61\n  dropout: 0\n  tie_embeddings: true\n  init_std: 0.02\n"
        "parallel:\n  tp: 2\n  pp: 2\n  dp: 1\n  cp: 1\n  order: [tp, cp, pp, dp]\n  schedule: 1f1b\n"
        "  virtual_stages: 1\n  stages: auto\n  sequence_parallel: false\n  zero: 0\n  recompute: none\n"
        "batch:\n  micro: 1\n  global: 12\n"
        "optimizer:\n  type: adamw\n  lr: 0.001\n  min_lr: 0\n  betas: [0.9, 0.95]\n  eps: 1e-08\n"
        "  weight_decay: 0.1\n  clip_norm: 1\n  schedule: cosine\n  warmup_steps: 0\n"
        "data:\n  train: \"t.bin\"\n  valid: none\n"
        "eval:\n  every: 0\n  batches: 8\n  sample_tokens: 0\n  sample_prompt: \"\\n\"\n  "
        "sample_temperature: 0.8\n  sample_top_k: 0\n"
        "checkpoint:\n  dir: \"checkpoints\"\n  every: 0\n  keep: 3\n  keep_every: 0\n  resume: \"auto\"\n  "
        "async: true\n"
        "  init_from: none\n"
        "log:\n  every: 10\n  tensorboard: true\n  trace_steps: []\n  straggler_factor: 1.5\n");
}

TEST_CASE("the block of the interface, value by value") {
  const RunConfig c =
      load_set({"run.dir=runs/tiny", "run.threads=3", "parallel.stages=[1, 3]", "optimizer.betas=[0.8, .99]",
                "data.train=[{path: a, weight: 2}, b, {path: c}]", "data.valid=v.bin",
                "checkpoint.resume=runs/x", "parallel.order=[dp,tp,pp,cp]", "model.vocab_size=4Ki"});
  CHECK(c.run.dir == "runs/tiny");
  CHECK(c.run.threads == 3);
  CHECK(c.parallel.stages == std::vector<std::int64_t>{1, 3});
  CHECK(c.optimizer.beta1 == 0.8);
  CHECK(c.optimizer.beta2 == 0.99);
  CHECK(c.data.train == std::vector<DataSource>{{"a", 2}, {"b", 1}, {"c", 1}});
  CHECK(c.data.valid == std::vector<DataSource>{{"v.bin", 1}});
  CHECK(c.checkpoint.resume == "runs/x");
  CHECK(c.parallel.order == std::vector<std::string>{"dp", "tp", "pp", "cp"});
  CHECK(c.model.vocab_size == 4096);
}

TEST_CASE("none in quotes is a file of that name, none without is none") {
  CHECK(load_set({"data.valid=none"}).data.valid.empty());
  CHECK(load_set({"data.valid="}).data.valid.empty());
  CHECK(load_set({"data.valid=[]"}).data.valid.empty());
  CHECK(load_set({"data.valid=\"none\""}).data.valid == std::vector<DataSource>{{"none", 1}});
  CHECK(load_set({"checkpoint.init_from=\"none\""}).checkpoint.init_from == "none");
}

TEST_CASE("faults inside a list of data sets are told at their own places") {
  const std::string text =
      replaced(kSmallConfig, "train: t.bin",
               "train:\n    - {path: a, weight: 0}\n    - {weight: 1}\n    - {path: b, wieght: 1}\n"
               "    - [c]\n    - {path: d, path: e}");
  const std::vector<std::string> lines = lines_of(refusal(text));
  REQUIRE(lines.size() == 5);
  CHECK(lines[0].starts_with("c.yaml:19:25: data.train: found 0, but it must be a number > 0"));
  CHECK(lines[1] == "c.yaml:20:7: data.train: a data set without a path");
  CHECK(lines[2].starts_with("c.yaml:21:17: data.train: unknown key wieght"));
  CHECK(lines[3].starts_with("c.yaml:22:7: data.train: found the list [c], but it must be a path"));
  CHECK(lines[4] == "c.yaml:23:17: data.train: path is given twice");
}

TEST_CASE("a run name is one part of a path") {
  for (const char* name : {"a/b", ".", "..", ".hidden", "\"\"", "\"a\\nb\"", "\"a\\0b\""}) {
    CAPTURE(name);
    CHECK(refusal_of_set({std::string("run.name=") + name}).find("the name of a folder") !=
          std::string::npos);
  }
  CHECK(load_set({"run.name=2024"}).run.name == "2024");
}

TEST_CASE("a --set wins over the file, a later one over an earlier one, an option over both") {
  CHECK(load_set({"model.layers=5", "model.layers=6"}).model.layers == 6);
  ConfigRequest request;
  request.sets = {"run.device=cpu"};
  request.options = {{"--device", "run.device", "cuda"}};
  CHECK(parse_config(kSmallConfig, "c.yaml", request).run.device == DeviceChoice::cuda);
  request.options = {{"--device", "run.device", "cdua"}};
  try {
    parse_config(kSmallConfig, "c.yaml", request);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(
        std::string(error.what()) ==
        "--device cdua: run.device: found cdua, but it must be one of auto, cpu, cuda (did you mean cuda?)");
  }
}

TEST_CASE("a --set is checked like the file") {
  CHECK(refusal_of_set({"parallel.tpp=2"}) ==
        "--set parallel.tpp=2: parallel.tpp: unknown key; the nearest known one is "
        "parallel.tp");
  CHECK(refusal_of_set({"paralel.tp=2"}).ends_with("the nearest known one is parallel.tp"));
  CHECK(refusal_of_set({"tp=2"}).ends_with("the nearest known name is parallel.tp"));
  CHECK(refusal_of_set({"parallel.tp"}) == "--set parallel.tp: must be written as SECTION.KEY=VALUE");
  CHECK(refusal_of_set({"parallel={tp: 2}"}).find("is a section") != std::string::npos);
  CHECK(refusal_of_set({"defaults=x.yaml"}) ==
        "--set defaults=x.yaml: defaults: can stand only in a config file, at its top");
  CHECK(refusal_of_set({""}) == "--set '': must be written as SECTION.KEY=VALUE");
  CHECK(refusal_of_set({"=3"}) == "--set =3: a key is missing; must be written as SECTION.KEY=VALUE");
  CHECK(refusal_of_set({"parallel.tp="}).find("found nothing") != std::string::npos);
  CHECK(refusal_of_set({"parallel.dp=\"auto\"", "parallel.stages=\"auto\"", "run.threads=\"auto\""}).empty());
  CHECK(refusal_of_set({"parallel.tp=\"2\""}).find("found the quoted text") != std::string::npos);
  CHECK(refusal_of_set({"parallel.stages=[1, "}).starts_with("--set parallel.stages=[1, : not valid YAML"));
  CHECK(refusal_of_set({"=", "a.b.c=1"}).find("nearest known") != std::string::npos);
  CHECK(lines_of(refusal_of_set({"run.name=\"a\nb\xFF"})).size() == 1);
}

TEST_CASE("a list or a map in the wrong place is shown as it was written, a long one in part") {
  CHECK(
      refusal_of_set({"parallel.order=[tp, pp]"}) ==
      "--set parallel.order=[tp, pp]: parallel.order: found the list [tp, pp], but it must be a list of tp, "
      "cp, pp, dp, each once, the fastest-varying first");
  CHECK(refusal_of_set({"optimizer.betas=[0.9]"}).find("found the list [0.9], but") != std::string::npos);
  CHECK(refusal_of_set({"parallel.stages=[]"}).find("found the list [], but") != std::string::npos);
  CHECK(
      refusal_of_set({"parallel.stages=[1, [2, \"a\\nb\"], ~]"}).find("found the list [2, \"a\\nb\"], but") !=
      std::string::npos);
  CHECK(refusal_of_set({"data.train={path: a, weight: [1]}"})
            .find("found the map {path: a, weight: [1]}, but") != std::string::npos);
  std::string many = "1";
  for (int i = 0; i < 2000; ++i) many += ", 1";
  const std::string message = refusal(with_key("optimizer.betas", "[" + many + "]"));
  CHECK(message.find("found the list [1, 1, ") != std::string::npos);
  CHECK(message.find("...") != std::string::npos);
  CHECK(message.size() < 400);
}

TEST_CASE("a section without keys is empty, a section that is no map is refused once") {
  CHECK(refusal(kSmallConfig + "eval:\nlog: {}\n") == "");
  CHECK(refusal(kSmallConfig + "eval: 3\n") == "c.yaml:19:7: eval: must be a map of keys");
  CHECK(refusal(replaced(kSmallConfig, "batch:\n  global: 12\n", "batch: 3\n")) ==
        "c.yaml:13:8: batch: must be a map of keys");
  CHECK(refusal(kSmallConfig + "model:\n  dropout: 0.1\n") ==
        "c.yaml:19:1: model: given twice (first in line 4)");
}

TEST_CASE("a file that is no map is refused") {
  CHECK(refusal("- a\n") == "c.yaml:1:1: found a list, but a config is a map of sections");
  CHECK(refusal("text").find("found text") != std::string::npos);
}

TEST_CASE("defaults are taken first, file by file, each place kept") {
  const WorkingFolder folder;
  WorkingFolder::write("base.yaml", kSmallConfig);
  WorkingFolder::write("middle.yaml", "defaults: base.yaml\nmodel:\n  layers: 6\n  dropout: 0.1\n");
  WorkingFolder::write("top.yaml", "defaults: middle.yaml\nmodel:\n  layers: 8\n");
  ConfigRequest request;
  request.path = "top.yaml";
  const RunConfig c = load_config(request);
  CHECK(c.model.layers == 8);
  CHECK(c.model.dropout == 0.1);
  CHECK(c.model.hidden == 32);
  CHECK(c.place_of("model.layers") == "top.yaml:3:11");
  CHECK(c.place_of("model.dropout") == "middle.yaml:4:12");
  CHECK(c.place_of("model.hidden") == "base.yaml:6:11");
  CHECK(c.place_of("model.init_std") == "default of model.init_std");
  WorkingFolder::write("middle.yaml", "defaults: base.yaml\nmodel:\n  layer: 6\n");
  CHECK(refusal_of_file("top.yaml").starts_with("middle.yaml:3:3: model.layer: unknown key"));
}

TEST_CASE("defaults that circle, go too deep, are missing or are no path are refused at their place") {
  const WorkingFolder folder;
  WorkingFolder::write("self.yaml", "defaults: ./self.yaml\n");
  CHECK(refusal_of_file("self.yaml") ==
        "self.yaml:1:11: defaults: ./self.yaml takes its defaults from itself");
  WorkingFolder::write("a.yaml", "defaults: b.yaml\n");
  WorkingFolder::write("b.yaml", "\ndefaults: a.yaml\n");
  CHECK(refusal_of_file("a.yaml") == "b.yaml:2:11: defaults: a.yaml takes its defaults from itself");
  for (int i = 0; i < 20; ++i)
    WorkingFolder::write(format("d{}.yaml", i), format("defaults: d{}.yaml\n", i + 1));
  CHECK(refusal_of_file("d0.yaml") == "d8.yaml:1:11: defaults: more than 8 files deep");
  WorkingFolder::write("lost.yaml", "defaults: nowhere.yaml\n");
  CHECK(refusal_of_file("lost.yaml") ==
        "lost.yaml:1:11: defaults: the config nowhere.yaml can't be opened: No such file or directory "
        "(relative paths are "
        "from the working directory)");
  for (const char* value : {"", "[a.yaml]", "{a: b}", "\"\""}) {
    WorkingFolder::write("odd.yaml", format("defaults: {}\n", value));
    CHECK(refusal_of_file("odd.yaml").starts_with("odd.yaml:1:1: defaults: must be the path"));
  }
  WorkingFolder::write("twice.yaml", "defaults: a.yaml\ndefaults: b.yaml\n");
  CHECK(refusal_of_file("twice.yaml") == "twice.yaml:2:1: defaults: given twice (first in line 1)");
}

TEST_CASE("what is no readable regular file of a config's size is refused at once") {
  const WorkingFolder folder;
  CHECK(refusal_of_file("nowhere.yaml")
            .starts_with("nowhere.yaml: the config nowhere.yaml can't be opened: No such file"));
  CHECK(refusal_of_file("") != "");
  CHECK(refusal_of_file(".").find("is a folder") != std::string::npos);
  CHECK(refusal_of_file("/dev/zero").find("is a pipe, a device or a socket") != std::string::npos);
  CHECK(refusal_of_file(std::string(5000, 'x')).size() < 1000);
  REQUIRE(::mkfifo("pipe", 0600) == 0);
  CHECK(refusal_of_file("pipe").find("is a pipe, a device or a socket") != std::string::npos);
  WorkingFolder::write("sparse.yaml", "");
  std::filesystem::resize_file("sparse.yaml", 100'000'000);
  const long before = peak_mebibytes();
  CHECK(refusal_of_file("sparse.yaml").find("is larger than 131072 bytes") != std::string::npos);
  if (kPeakIsTrue) CHECK(peak_mebibytes() - before < 64);  // it was not read
}

TEST_CASE("a config written back loads as the same values, to the last bit, and is written the same again") {
  const CounterRng rng(23, RngPurpose::test);
  for (std::uint64_t round = 0; round < 300; ++round) {
    const auto real = [&](std::uint64_t i) { return rng.uniform(round, i); };
    RunConfig c = load_set({"data.train=[{path: 'a \"b\" \\\\', weight: 0.1}, c]"});
    c.run.seed = rng.bits64(round, 1);
    c.run.name = round % 2 == 0 ? "null" : "x: #y";
    c.run.watchdog_s = real(2) * 1e9;
    c.model.dropout = real(3);
    c.model.init_std = real(4) * 1e-30;
    c.optimizer.lr = real(5);
    c.optimizer.min_lr = c.optimizer.lr * real(6);
    c.optimizer.beta1 = real(7);
    c.optimizer.beta2 = real(8);
    c.optimizer.eps = real(9) * 1e-300;
    c.data.train[0].weight = real(10);
    c.eval.sample_prompt = "In the \t\"beginning\"\n\xC3\xA9";
    c.log.trace_steps = {1, 5};
    const std::string text = dump_config(c);
    const RunConfig again = load(text);
    CAPTURE(text);
    REQUIRE(dump_config(again) == text);
    CHECK(again.run.seed == c.run.seed);
    CHECK(again.run.name == c.run.name);
    CHECK(again.eval.sample_prompt == c.eval.sample_prompt);
    CHECK(again.data.train == c.data.train);
    const auto same = [](double a, double b) {
      return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
    };
    CHECK(same(again.run.watchdog_s, c.run.watchdog_s));
    CHECK(same(again.model.dropout, c.model.dropout));
    CHECK(same(again.model.init_std, c.model.init_std));
    CHECK(same(again.optimizer.lr, c.optimizer.lr));
    CHECK(same(again.optimizer.min_lr, c.optimizer.min_lr));
    CHECK(same(again.optimizer.beta1, c.optimizer.beta1));
    CHECK(same(again.optimizer.beta2, c.optimizer.beta2));
    CHECK(same(again.optimizer.eps, c.optimizer.eps));
  }
}

TEST_CASE("every file in configs/ loads, in its own layout and back from what it writes") {
  int num_files = 0;
  for (const auto& file : std::filesystem::directory_iterator(HPT_SOURCE_DIR "/configs")) {
    if (file.path().extension() != ".yaml") continue;
    CAPTURE(file.path());
    ++num_files;
    ConfigRequest request;
    request.path = file.path().string();
    const RunConfig config = load_config(request);
    CHECK(dump_config(load(dump_config(config))) == dump_config(config));
  }
  CHECK(num_files >= 1);
}

TEST_CASE("the config in the README loads, and asks for nothing that is still to come") {
  std::ifstream file(HPT_SOURCE_DIR "/README.md");
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string readme = stream.str();
  const std::string fence = "```yaml\n";
  const std::size_t begin = readme.find(fence);
  REQUIRE(begin != std::string::npos);
  const std::string block = readme.substr(begin + fence.size());
  const std::string text = block.substr(0, block.find("```"));
  CHECK(refusal(text) == "");
  CHECK(not_yet_supported(load(text, {}, 8)).empty());
}

}  // namespace
}  // namespace hpt::test
