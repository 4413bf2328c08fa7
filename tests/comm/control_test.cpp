// The board on which ranks say what they do, and how waiting ranks read it.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "comm/control/host_page.h"
#include "comm/control/process_probe.h"
#include "comm/control/vain_wait.h"
#include "comm/engine/awake_time.h"
#include "e2e/run_binary.h"
#include "support/ranks.h"

namespace hpt {
namespace {

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

TEST_CASE("the processes of one job have one page, those of another another") {
  const std::string job = format("control_test {}", getpid());
  {
    const HostPage first(job, 3);
    const HostPage second(job, 3);
    const HostPage other(job + " other", 3);
    first.board()->of(2).enter(RunPhase::step, 7);
    CHECK(second.board()->of(2).step == 7);
    CHECK(other.board()->of(2).step == 0);
    CHECK(second.board()->claim_word(Teller::rank));
    CHECK_FALSE(first.board()->claim_word(Teller::monitor));
    CHECK(first.board()->teller() == Teller::rank);
  }
  const HostPage later(job, 3);
  CHECK(later.board()->of(2).step == 0);
}

TEST_CASE("a page of another size, as of another program, is not taken") {
  const std::string job = format("control_test size {}", getpid());
  const HostPage first(job, 3);
  const HostPage second(job, 4);
  first.board()->of(2).enter(RunPhase::step, 7);
  CHECK(second.board()->of(2).step == 0);
}

TEST_CASE("a process is running, stopped or gone") {
  const e2e::Process process({{"sleep", "60"}});
  const pid_t pid = process.pid();
  const std::uint64_t born = birth_of(pid);
  const auto becomes = [&](ProcessState state) {
    for (int i = 0; i < 1000 && state_of(pid, born) != state; ++i) sleep_for(0.002);
    return state_of(pid, born) == state;
  };
  CHECK(born > 0);
  CHECK(becomes(ProcessState::running));
  CHECK(state_of(pid, born + 1) == ProcessState::gone);  // another process with the same pid
  kill(pid, SIGSTOP);
  CHECK(becomes(ProcessState::stopped));
  kill(pid, SIGKILL);
  CHECK(becomes(ProcessState::gone));  // a zombie still
  CHECK(birth_of(0) == 0);
}

TEST_CASE("who tells of a stopped process kills it: not every launcher would") {
  e2e::Process process({{"sleep", "60"}});
  kill(process.pid(), SIGSTOP);
  const e2e::Outcome outcome =
      e2e::run({{HPT_LAUNCH_PROGRAM, "wait for process", std::to_string(process.pid())}});
  INFO(outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.err ==
        "rank 1: is stopped (by a signal or a debugger) in the start-up; rank 0 waits in pp: recv\n");
  CHECK(e2e::ends_soon(process.pid()));
}

TEST_CASE("a rank that is slow but goes on is waited for beyond the deadline") {
  testing::run_ranks(3, [](ProcessGroup& world) {
    world.set_deadline(0.4);
    if (world.rank() == 2)
      for (int i = 0; i < 12; ++i) {
        sleep_for(0.1);
        world.status().act("forward", i);
      }
    if (world.rank() == 1) {  // in the middle of the chain
      int x = 0;
      world.recv({&x, DType::i32, {1}}, 2, {}).join();
      world.send({&x, DType::i32, {1}}, 0, {}).join();
    }
    int x = 5;
    if (world.rank() == 2) world.send({&x, DType::i32, {1}}, 1, {}).join();
    if (world.rank() == 0) world.recv({&x, DType::i32, {1}}, 1, {}).join();
  });
}

TEST_CASE("a thread that hangs is named, not the rank that waits for it, with its step and action") {
  const auto failures = testing::failures_of({3, 0.5}, [](ProcessGroup& world) {
    int x = 0;
    if (world.rank() == 0) world.recv({&x, DType::i32, {1}}, 1, {}).join();
    if (world.rank() == 1) world.recv({&x, DType::i32, {1}}, 2, {}).join();
    world.status().enter(RunPhase::step, 3);
    world.status().act("forward", 1);
    sleep_for(1.5);
  });
  REQUIRE(!failures.empty());
  for (const testing::RankFailure& failure : failures) {
    if (failure.kind == ErrorKind::aborted) continue;
    INFO(failure.message);
    CHECK(failure.message.starts_with(
        "rank 2: has been busy with one thing for 0.5 s, at step 3, forward of micro-batch 1; rank "));
  }
}

TEST_CASE("a rank that others kept from the processor gets more time, but not for ever") {
  const auto board = make_private_board(2);
  for (const int rank : {0, 1}) board->join_as_thread(rank);
  board->of(0).begin_wait("recv", "pp");
  board->of(0).waits_for = 1;
  VainWait vain;
  vain.look(*board, 0, 0);
  CHECK_FALSE(vain.look(*board, 0, 0.5));
  CHECK(vain.is_over(*board, 3, 3));
  board->of(1).starved_s = 2;
  CHECK_FALSE(vain.is_over(*board, 3, 3));
  CHECK(vain.is_over(*board, 5, 3));
  board->of(1).starved_s = 1000;
  CHECK(vain.is_over(*board, 15, 3));
  board->of(1).beat();
  CHECK(vain.look(*board, 0, 0.5));
  board->of(1).starved_s = 2000;  // before the last sign of life: no reason to wait
  CHECK(vain.is_over(*board, 3, 3));
}

TEST_CASE("the system tells how long a process was kept from the processor") {
  const double before = starved_s(getpid());
  CHECK(before >= 0);
  CHECK(starved_s(getpid()) >= before);
  CHECK(starved_s(0) == 0);
}

TEST_CASE("time in which a thread did not look counts for a moment only") {
  AwakeTime time;
  sleep_for(0.05);
  time.look();
  CHECK(time.seconds() > 0.04);
  time.restart();
  sleep_for(1.3);
  time.look();
  CHECK(time.seconds() <= 1);
}

}  // namespace
}  // namespace hpt
