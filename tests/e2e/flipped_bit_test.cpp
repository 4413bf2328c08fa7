// A bit that flips in one rank's memory while a run goes on, as faulty memory flips it.
#include <fcntl.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "e2e/faults.h"
#include "e2e/saved_run.h"

namespace e2e {
namespace {

const std::string kTensor = "blocks.1.mlp.up.weight";

// From the midst of the tensor in a shard of one rank.
std::string bytes_of_tensor(const std::string& shard) {
  std::uint64_t length = 0;
  std::memcpy(&length, shard.data(), sizeof length);
  const auto header = nlohmann::json::parse(shard.substr(8, length));
  for (const auto& [name, tensor] : header.items()) {
    if (name.rfind(kTensor, 0) != 0 || name.find("moment") != std::string::npos) continue;
    const std::size_t begin = tensor["data_offsets"][0];
    const std::size_t end = tensor["data_offsets"][1];
    return shard.substr(8 + length + (begin + end) / 2, 64);
  }
  throw std::runtime_error("the shard holds no " + kTensor);
}

// Flips the lowest bit of what follows `bytes` wherever they stand in the process' own memory; how often.
int flip_at(pid_t pid, const std::string& bytes) {
  const std::string proc = "/proc/" + std::to_string(pid);
  const int memory = open((proc + "/mem").c_str(), O_RDWR | O_CLOEXEC);
  if (memory < 0) return -1;
  int num_flips = 0;
  std::istringstream maps(read_file(proc + "/maps"));
  for (std::string line; std::getline(maps, line);) {
    if (line.find(" rw-p ") == std::string::npos || line.find('/') != std::string::npos) continue;
    const std::uint64_t begin = std::stoull(line, nullptr, 16);
    const std::uint64_t end = std::stoull(line.substr(line.find('-') + 1), nullptr, 16);
    if (end - begin > (std::uint64_t{256} << 20)) continue;
    std::string held(end - begin, '\0');
    if (pread(memory, held.data(), held.size(), static_cast<off_t>(begin)) < 0) continue;
    for (std::size_t at = held.find(bytes); at != std::string::npos; at = held.find(bytes, at + 1)) {
      const char flipped = static_cast<char>(held[at] ^ 1);
      num_flips += pwrite(memory, &flipped, 1, static_cast<off_t>(begin + at)) == 1 ? 1 : 0;
    }
  }
  close(memory);
  return num_flips;
}

TEST_CASE("one bit that flips in a weight of one rank stops the run within run.check_replicas_every steps") {
  const SmallRun run;
  // A rate that moves no weight: what a checkpoint tells is what each rank holds.
  const SmallRun::Settings settings = {"optimizer.lr=1e-30", "optimizer.min_lr=0", "eval.every=0"};
  SmallRun::Settings one = settings;
  one.insert(one.end(), {"run.dir=one", "run.steps=1", "optimizer.warmup_steps=0", "checkpoint.every=1"});
  REQUIRE(run.train(Ranks::threads, 1, one).exit_code == 0);
  const std::string bytes =
      bytes_of_tensor(read_file(step_folder(run, 1, "one") + "/shard-00000.safetensors"));
  for (const auto& [struck, every, save_every] :
       {std::tuple<std::size_t, std::string, std::string>{0, "7", "100000"}, {2, "100000", "7"}}) {
    std::filesystem::remove_all(run.folder() / "out");
    SmallRun::Settings three = settings;
    three.insert(three.end(), {"parallel.dp=3", "batch.global=12", "run.steps=1000000",
                               "run.check_replicas_every=" + every, "checkpoint.every=" + save_every});
    Process process(run.command(Ranks::processes, 3, three));
    REQUIRE(wait_for_step(run, process));
    const std::vector<pid_t> ranks = children_of(process.pid());
    REQUIRE(ranks.size() == 3);
    const int num_flips = flip_at(ranks[struck], bytes);
    if (num_flips < 0) {
      WARN("not tried: another process' memory can't be written here");
      return;
    }
    REQUIRE(num_flips > 0);
    const auto logged = [&] {
      const std::string text = read_file(run.folder() / "out/metrics.jsonl");
      return std::count(text.begin(), text.end(), '\n');
    };
    const auto before = logged();
    const Outcome outcome = process.wait();
    CAPTURE(struck, outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(outcome.count_own_err_lines() == 1);
    CHECK(outcome.count_err_lines("rank " + std::to_string(struck) + " on host ") == 1);
    CHECK(outcome.count_err_lines("the copy of " + kTensor + " is not that of the 2 other ranks") == 1);
    CHECK(logged() <= before + 16);
    const std::size_t at = outcome.err.find("step ");
    REQUIRE(at != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(step_folder(run, std::stoi(outcome.err.substr(at + 5)))));
  }
}

}  // namespace
}  // namespace e2e
