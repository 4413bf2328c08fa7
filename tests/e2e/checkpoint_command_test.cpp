// `hpt-train checkpoint`, as typed, on checkpoints of real runs: whole, damaged, crafted, and on what is
// none.
#include <catch2/catch.hpp>
#include <cmath>

#include "core/format.h"
#include "core/hash.h"
#include "e2e/small_run.h"

namespace e2e {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
namespace fs = std::filesystem;

Outcome checkpoint(const SmallRun& run, const std::vector<std::string>& words) {
  std::vector<std::string> all{"checkpoint"};
  all.insert(all.end(), words.begin(), words.end());
  return run.start(all).wait();
}

const std::string kStep4 = "out/checkpoints/step-00000004";
const std::string kStep6 = "out/checkpoints/step-00000006";

// Checkpoints of steps 2, 4 and 6 in <dir>/checkpoints.
void train(const SmallRun& run, int ranks, SmallRun::Settings settings, const std::string& dir = "out") {
  settings.insert(settings.end(), {"checkpoint.every=2", "run.dir=" + dir, "eval.every=0"});
  const Outcome outcome = run.train(Ranks::threads, ranks, settings);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
}

// Refused: one line that holds `words`, nothing printed, exit code 2.
void check_refused(const SmallRun& run, const std::vector<std::string>& arguments, const std::string& words) {
  const Outcome outcome = checkpoint(run, arguments);
  INFO(outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Contains(words));
  CHECK(outcome.count_err_lines("") == 1);
}

// A manifest whose text was changed, with the checksum that it then should have.
std::string resealed(std::string text) {
  const std::string key = "  \"checksum\": \"";
  const std::size_t tail = text.rfind(key);
  return text.replace(tail + key.size(), 16,
                      hpt::format("{:016x}", hpt::hash64(std::string_view(text).substr(0, tail))));
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

TEST_CASE("checkpoint inspect tells point, layout, files and tensors, of the newest where a run is named") {
  const SmallRun run;
  train(run, 4, {"parallel.tp=2", "parallel.pp=2"});
  const Outcome shown = checkpoint(run, {"inspect", kStep4});
  REQUIRE(shown.exit_code == 0);
  CHECK_THAT(shown.out,
             StartsWith(kStep4 + "\nstep 4, after 32 samples, 1,024 tokens; written as tp 2 x cp 1 "
                                 "x pp 2 x dp 1\nfiles: 4, ") &&
                 Contains("shard-00003.safetensors") && Contains("\n  blocks.*.attention.query.weight  ") &&
                 Contains(" 4  f32    [32, 32]  ") && Contains("first_moment, second_moment"));
  for (const std::string path : {"out", "out/", "out/checkpoints", "out/checkpoints//"}) {
    const Outcome newest = checkpoint(run, {"inspect", path});
    CHECK(newest.exit_code == 0);
    CHECK_THAT(newest.out, StartsWith(kStep6 + ": the newest of 3 checkpoints\nstep 6, "));
  }
  const auto manifest = nlohmann::json::parse(read_file(run.folder() / (kStep6 + "/manifest.json")));
  const auto json = nlohmann::json::parse(checkpoint(run, {"inspect", "out", "--json"}).out);
  CHECK(json["path"] == kStep6);
  CHECK(json["mesh"] == nlohmann::json{{"tp", 2}, {"cp", 1}, {"pp", 2}, {"dp", 1}});
  CHECK(json["tensors"].size() == manifest["tensors"].size());
  CHECK(json["tensors"][0]["hash"] == manifest["tensors"][0]["hash"]);
  std::uintmax_t bytes = 0;
  for (const auto& file : json["files"])
    bytes += fs::file_size(run.folder() / (kStep6 + "/" + file["name"].get<std::string>()));
  CHECK(json["bytes"] == bytes);
}

TEST_CASE(
    "checkpoint verify reads every byte: a whole one is told, each fault has a line, strangers are named") {
  const SmallRun run;
  train(run, 2, {"parallel.tp=2"});
  const std::string folder = run.folder() / kStep6 + "/";
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder)) bytes += entry.file_size();
  const std::string whole = "whole: " + std::to_string(bytes) + " bytes in 3 files\n";
  CHECK(checkpoint(run, {"verify", kStep6}).out == whole);
  CHECK(checkpoint(run, {"verify", "out"}).out == kStep6 + ": the newest of 3 checkpoints\n" + whole);

  write_file(folder + "notes.txt", "mine");
  const Outcome beside = checkpoint(run, {"verify", kStep6});
  CHECK(beside.exit_code == 0);
  CHECK(beside.out == whole);
  CHECK(beside.err == kStep6 + "/notes.txt: is no part of the checkpoint\n");
  fs::remove(folder + "notes.txt");

  const auto check_fault = [&](const std::string& line) {
    const Outcome outcome = checkpoint(run, {"verify", kStep6});
    CHECK(outcome.exit_code == 1);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, StartsWith(kStep6 + line));
    return outcome.count_err_lines("");
  };
  for (const std::string name : {"shard-00000.safetensors", "shard-00001.safetensors"}) {
    const std::string good = read_file(folder + name);
    for (const std::size_t at : {std::size_t{0}, std::size_t{9}, good.size() / 2, good.size() - 1}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 16);
      write_file(folder + name, bad);
      CHECK(check_fault("/" + name + ": is damaged") == 1);
    }
    write_file(folder + name, good.substr(0, good.size() - 1));
    CHECK(check_fault("/" + name + ": has ") == 1);
    fs::remove(folder + name);
    CHECK(check_fault("/" + name + ": can't read it") == 1);
    write_file(folder + name, good);
  }
  const std::string manifest = read_file(folder + "manifest.json");
  write_file(folder + "manifest.json", manifest.substr(0, manifest.size() / 2));
  CHECK(check_fault("/manifest.json: is damaged, or no manifest") == 1);
  write_file(folder + "manifest.json", manifest);
  for (const std::string name : {"shard-00000.safetensors", "shard-00001.safetensors"})
    write_file(folder + name, "gone");
  CHECK(check_fault("/shard-00000.safetensors: has 4 bytes") == 2);
}

TEST_CASE(
    "checkpoint diff of one run in two layouts is equal, of two steps tells what differs and by how much") {
  const SmallRun run;
  train(run, 1, {});
  train(run, 4, {"parallel.pp=4"}, "piped");
  train(run, 2, {"parallel.tp=2"}, "cut");
  const Outcome equal = checkpoint(run, {"diff", kStep6, "piped/checkpoints/step-00000006"});
  INFO(equal.err << equal.out);
  CHECK(equal.exit_code == 0);
  CHECK_THAT(equal.out,
             Contains("config: parallel.pp: 1 and 4 (how it ran)\n") && Contains(" alike, 0 not\nequal\n"));

  const Outcome steps = checkpoint(run, {"diff", kStep4, "out"});
  CHECK(steps.exit_code == 1);
  CHECK_THAT(steps.out,
             StartsWith(kStep6 + ": the newest of 3 checkpoints\nstep: 4 and 6\nsamples: 32 and 48\n") &&
                 Contains("\n  embedding.token.weight ") && Contains("different\n"));

  // tp adds in another order: other bits, nearly the same values.
  const Outcome rounded = checkpoint(run, {"diff", kStep6, "cut"});
  CHECK(rounded.exit_code == 1);
  const std::size_t at = rounded.out.find("\n  embedding.position.weight ");
  REQUIRE(at != std::string::npos);
  std::istringstream line(rounded.out.substr(at));
  std::string name, count;
  double absolute = 1, relative = 1;
  line >> name >> count >> absolute >> relative;
  CHECK(absolute > 0);
  CHECK(absolute < 1e-4);
  CHECK(relative >= absolute / 0.2);  // no weight is as large as that
}

TEST_CASE("checkpoint diff names keys, tensors of one side alone, and other shapes and dtypes") {
  const SmallRun run;
  train(run, 1, {});
  train(run, 1, {"model.seq_length=16", "model.tie_embeddings=false", "run.precision=fp64"}, "other");
  const Outcome outcome = checkpoint(run, {"diff", "out", "other"});
  INFO(outcome.out);
  CHECK(outcome.exit_code == 1);
  CHECK_THAT(outcome.out, Contains("config: model.seq_length: 32 and 16\n") &&
                              Contains("config: run.precision: fp32 and fp64\n") &&
                              Contains("tokens: 1,536 and 768\n") && Contains("f32 and f64\n") &&
                              Contains("[32, 32] and [16, 32]\n"));
  CHECK_THAT(outcome.out, Catch::Matchers::Matches("[^]*\n  head\\.weight +only in the second\n[^]*"));
}

TEST_CASE("what is no checkpoint, or a crafted one, is refused by its path in one line") {
  const SmallRun run;
  train(run, 1, {});
  fs::create_directories(run.folder() / "empty/checkpoints/step-00000002.uncommitted");
  for (const std::string command : {"inspect", "verify"}) {
    check_refused(run, {command, "nowhere"}, "nowhere: is not there");
    check_refused(run, {command, "empty"}, "empty: is no checkpoint, and no folder of a run with one");
    check_refused(run, {command, "run.yaml"}, "run.yaml: is no checkpoint");
    check_refused(run, {command, kStep6 + "/manifest.json"}, "manifest.json: is no checkpoint");
    check_refused(run, {command, ""}, "checkpoint: found ''");
    check_refused(run, {command}, "checkpoint is required");
    check_refused(run, {command, std::string(5000, 'x')}, "can't look at it");
  }
  check_refused(run, {"diff", "out"}, "second is required");
  check_refused(run, {"diff", "nowhere", "out"}, "nowhere: is not there");
  check_refused(run, {}, "checkpoint: a command must follow: inspect, verify, diff, export-hf, import-hf");

  const std::string path = run.folder() / (kStep6 + "/manifest.json");
  const std::string good = read_file(path);
  const auto check_crafted = [&](const std::string& what, const std::string& with, const std::string& words) {
    write_file(path, resealed(replaced(good, what, with)));
    check_refused(run, {"inspect", kStep6}, kStep6 + "/manifest.json: is damaged, or no manifest: " + words);
  };
  check_crafted("shard-00000.safetensors", "../../x", "'../../x' is no shard's name");
  check_crafted("\"step\": 6", "\"step\": -6", "-6 is no whole number from 0 on");
  check_crafted("\"step\": 6", "\"step\": 1e300", "1e+300 is no whole number from 0 on");
  check_crafted("\"version\": 1", "\"version\": 2", "it has version 2");
  check_crafted("[257,32]", "[1099511627776,1099511627776]",
                "embedding.token.weight is larger than any memory");
  check_crafted("[257,32]", "[256,32]", "a box of embedding.token.weight is not within its shape");
  check_crafted("embedding.token.weight", "\\u001b[31m", "'?[31m' is no tensor's name");
  check_crafted("\"mesh\": [", "\"mesh\": [[[[[[[[[[[[[[[[[[", "it is nested too deeply");
  write_file(path, resealed(replaced(good, "layers: 4\\n", "layers: 0\\n")));
  check_refused(run, {"diff", kStep6, kStep4}, "model.layers: found 0");
  write_file(path, good.substr(0, 10));
  check_refused(run, {"inspect", kStep6}, "manifest.json: is damaged, or no manifest");
}

TEST_CASE("checkpoint diff refuses to compare the values of a damaged shard") {
  const SmallRun run;
  train(run, 1, {});
  const std::string path = run.folder() / (kStep6 + "/shard-00000.safetensors");
  const std::string good = read_file(path);
  std::string bad = good;
  bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 1);
  write_file(path, bad);
  const Outcome outcome = checkpoint(run, {"diff", kStep4, kStep6});
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.count_err_lines("is damaged: it has not the hash that was saved") == 1);
  CHECK(outcome.count_err_lines("") == 1);
  write_file(path, good.substr(0, good.size() - 4));
  check_refused(run, {"diff", kStep4, kStep6}, "shard-00000.safetensors: has ");
}

}  // namespace
}  // namespace e2e
