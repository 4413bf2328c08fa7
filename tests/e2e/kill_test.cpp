// Ranks that are killed at any call to the disk, or at any moment: the next plain run goes on from what was
// committed, and ends with the bits of a run that nobody disturbed.
//   HPT_EVERY_KILL=1 e2e_test "a rank that is killed at any call*"    all layouts x ranks x calls, or those
//   of
//                                                                     one, with -c tp2pp2dp2
//   HPT_KILLS=200 e2e_test "however often*"
#include <catch2/catch.hpp>

#include "e2e/disk_faults.h"
#include "e2e/saved_run.h"
#include "support/draws.h"

namespace e2e {
namespace {

using Catch::Matchers::Contains;
using hpt::testing::Draws;
using hpt::testing::number_of;
namespace fs = std::filesystem;

const std::vector<Layout> kLayouts = {{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 2, 2}};

// The last step that the output tells to be committed; 0 where there is none.
int last_committed(const std::string& out) {
  int last = 0;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find(": checkpoint committed");
    if (at != std::string::npos) last = std::stoi(line.substr(line.rfind(' ', at) + 1));
  }
  return last;
}

// The step that the output tells the run to have gone on from; 0 for a fresh start.
int resumed_after(const std::string& out) {
  const std::string begin = "resumed after step ";
  const std::size_t at = out.find(begin);
  return at == std::string::npos ? 0 : std::stoi(out.substr(at + begin.size()));
}

constexpr int kSteps = 4;

// A run in one layout that nobody disturbs, and others that are to end like it.
class Calm {
 public:
  explicit Calm(const Layout& layout)
      : layout_(layout),
        settings_(layout.settings({"run.steps=" + std::to_string(kSteps), "checkpoint.every=2",
                                   "checkpoint.keep=1", "eval.every=0"})) {
    REQUIRE(run_.train(Ranks::processes, layout.size(), settings_).exit_code == 0);
    losses_ = step_values(run_.metrics(), "loss");
    hashes_ = hashes(run_, kSteps);
  }

  const Layout& layout() const { return layout_; }

  // False where the run was over before the call came.
  bool survives(const Kill& kill) const {
    fs::remove_all(run_.folder() / "out");
    const Command command = run_.command(Ranks::processes, layout_.size(), settings_);
    const Outcome killed = e2e::run(with_kill(command, kill));
    CAPTURE(layout_.tp, layout_.pp, layout_.dp, kill.rank, kill.call, killed.out, killed.err);
    REQUIRE_FALSE(killed.timed_out);
    if (killed.exit_code == 0) return false;
    const int others = layout_.size() > 1 ? 1 : 0;  // to tell of it
    CHECK(killed.count_own_err_lines() == others);
    CHECK(killed.count_err_lines("rank " + std::to_string(kill.rank) + " on host ") == others);
    const Outcome outcome = e2e::run(command);
    CAPTURE(outcome.out, outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK(resumed_after(outcome.out) >= last_committed(killed.out));
    CHECK(step_values(run_.metrics(), "loss") == losses_);
    CHECK(hashes(run_, kSteps) == hashes_);
    // The one before may have been about to go; half of none is there.
    for (const auto& entry : fs::directory_iterator(run_.folder() / "out/checkpoints")) {
      CHECK(fs::exists(entry.path() / "manifest.json"));
      CHECK(entry.path().extension().empty());
    }
    return true;
  }

 private:
  Layout layout_;
  SmallRun::Settings settings_;
  SmallRun run_;
  std::vector<double> losses_;
  std::map<std::string, std::string> hashes_;
};

// Every call of every rank.
int kill_at_all(const Calm& calm) {
  int num_kills = 0;
  for (int rank = 0; rank < calm.layout().size(); ++rank)
    for (int call = 1; calm.survives({rank, call}); ++call) ++num_kills;
  return num_kills;
}

// Some of them, others for every seed. A rank other than 0 has about 10 calls, rank 0 about 60.
int kill_at_some(const Calm& calm, Draws& draws) {
  constexpr int kDraws = 3;
  int num_kills = 0;
  for (int i = 0; i < kDraws; ++i) {
    const int rank =
        i == 0 ? 0 : static_cast<int>(draws.below(static_cast<std::size_t>(calm.layout().size())));
    const int call = static_cast<int>(draws.between(1, rank == 0 ? 40 : 10));
    num_kills += calm.survives({rank, call}) ? 1 : 0;
  }
  return num_kills;
}

TEST_CASE("a rank that is killed at any call to the disk costs no committed checkpoint and changes no bit") {
  const bool is_every = number_of("HPT_EVERY_KILL", 0) != 0;
  for (std::size_t i = 0; i < kLayouts.size(); ++i) {
    const Layout& layout = kLayouts[i];
    DYNAMIC_SECTION("tp" << layout.tp << "pp" << layout.pp << "dp" << layout.dp) {
      Draws draws(number_of("HPT_FUZZ_SEED", 1), i);
      const Calm calm(layout);
      const int num_kills = is_every ? kill_at_all(calm) : kill_at_some(calm, draws);
      WARN("kills: " << num_kills);
      CHECK(num_kills >= (is_every ? 25 + 7 * (layout.size() - 1) : 1));
    }
  }
}

TEST_CASE(
    "a rank that is killed while its save goes on beside the steps leaves the checkpoint before as the "
    "last") {
  const Layout layout{2, 1, 1};
  const SmallRun::Settings settings =
      layout.settings({"run.steps=1000000", "checkpoint.every=50", "checkpoint.keep=1", "eval.every=0"});
  for (int rank = 0; rank < layout.size(); ++rank) {
    const SmallRun run;
    // The write of the second save: past the calls of the probe and of the first save.
    const Kill kill{rank, rank == 0 ? 20 : 9, SIGKILL, 600};
    const Outcome killed = e2e::run(with_kill(run.command(Ranks::processes, 2, settings), kill));
    CAPTURE(rank, killed.out, killed.err);
    CHECK(killed.exit_code != 0);
    CHECK(killed.count_own_err_lines() == 1);
    CHECK(last_committed(killed.out) == 50);
    CHECK(step_values(run.metrics(), "loss").size() > 100);  // training went on
    const Outcome outcome = run.train(
        Ranks::processes, 2, layout.settings({"run.steps=100", "eval.every=0", "checkpoint.every=50"}));
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK_THAT(outcome.out, Contains("resumed after step 50 "));
    CHECK(step_values(run.metrics(), "loss").size() == 100);
  }
}

TEST_CASE("a rank that is stopped in a save is named with the step and the save, and the job ends") {
  const SmallRun run;
  const Layout layout{1, 1, 2};
  const SmallRun::Settings settings =
      layout.settings({"run.steps=1000000", "checkpoint.every=2", "eval.every=0", "checkpoint.async=false",
                       "run.watchdog_s=4"});
  for (int rank = 0; rank < layout.size(); ++rank) {
    fs::remove_all(run.folder() / "out");
    const Kill stop{rank, rank == 0 ? 10 : 6, SIGSTOP, 0};
    const Outcome outcome = e2e::run(with_kill(run.command(Ranks::processes, 2, settings), stop));
    INFO(outcome.err);
    CHECK_FALSE(outcome.timed_out);
    CHECK(outcome.exit_code == 1);
    CHECK(outcome.count_own_err_lines() == 1);
    CHECK(outcome.count_err_lines("rank " + std::to_string(rank) + " on host ") == 1);
    CHECK(outcome.count_err_lines("in the save at step 2") == 1);
  }
}

TEST_CASE("calls to the disk that are interrupted or do a part only are gone on with") {
  const Calm calm({1, 1, 2});
  const SmallRun run;
  Command command = run.command(
      Ranks::processes, 2, calm.layout().settings({"run.steps=4", "checkpoint.every=2", "eval.every=0"}));
  command.environment = {std::string("LD_PRELOAD=") + HPT_KILL_SHIM, "HPT_SHORT_CALLS=1"};
  const Outcome outcome = e2e::run(command);
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(hashes(run, 4).size() > 100);
  CHECK(run.train(Ranks::processes, 2,
                  calm.layout().settings({"run.steps=4", "checkpoint.every=2", "eval.every=0"}))
            .exit_code == 0);
}

// Until this process, of all that go on with a run, has logged a step.
void wait_for_own_step(Process& process) {
  while (process.running() && process.out().find("tokens/s") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

TEST_CASE(
    "however often its ranks are killed, at any moment, a run ends with the same losses and the same bits") {
  const std::uint64_t num_kills = number_of("HPT_KILLS", 10);
  const Layout layout{2, 2, 1};
  const SmallRun::Settings settings =
      layout.settings({"run.steps=" + std::to_string(40 * num_kills), "checkpoint.every=3",
                       "checkpoint.keep=1", "eval.every=7"});
  const int last = static_cast<int>(40 * num_kills);
  const SmallRun whole;
  Command calm = whole.command(Ranks::processes, layout.size(), settings);
  calm.limit_s = 3600;
  REQUIRE(e2e::run(calm).exit_code == 0);

  const SmallRun run;
  Command command = run.command(Ranks::processes, layout.size(), settings);
  int newest = 0;
  std::uint64_t struck = 0;
  for (std::uint64_t round = 0; struck < num_kills && newest < last; ++round) {
    Draws draws(number_of("HPT_FUZZ_SEED", 7), round);
    Process process(command);
    if (!draws.one_in(4)) wait_for_own_step(process);  // else while it starts, most likely
    std::this_thread::sleep_for(std::chrono::milliseconds(draws.between(0, 600)));
    const std::vector<pid_t> ranks = process.running() ? children_of(process.pid()) : std::vector<pid_t>();
    const bool strikes = ranks.size() == 4;
    if (strikes) kill(ranks[draws.below(4)], SIGKILL);
    struck += strikes ? 1 : 0;
    if (!strikes) process.send(SIGKILL);
    // Once in some hundred times mpirun itself hangs then, in its own end; it is stopped at the limit.
    const Outcome outcome = process.wait();
    CAPTURE(round, outcome.out, outcome.err);
    const int begun = resumed_after(outcome.out);
    CHECK((begun >= newest || (begun == 0 && outcome.out.find("a fresh start") == std::string::npos)));
    newest = std::max(newest, last_committed(outcome.out));
    for (const pid_t rank : ranks) REQUIRE(ends_soon(rank));
  }
  WARN("kills: " << struck << ", steps committed by then: " << newest);
  CHECK(struck == num_kills);
  CHECK(newest > 0);
  command.limit_s = 3600;
  const Outcome outcome = e2e::run(command);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(step_values(run.metrics(), "loss") == step_values(whole.metrics(), "loss"));
  CHECK(hashes(run, last) == hashes(whole, last));
}

}  // namespace
}  // namespace e2e
