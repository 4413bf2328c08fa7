// A program for launch_test.cpp: launches ranks that end in many ways. Arguments: --local's number or 0, the
// way, and the rank that goes it. Or "wait for process" and its pid.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "comm/control/monitor.h"
#include "comm/control/process_probe.h"
#include "comm/launch/world.h"
#include "core/error.h"

namespace hpt {
namespace {

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

using Way = std::function<void(RankContext&)>;

void be_at_step_12(RankContext& rank) {
  rank.status->enter(RunPhase::step, 12);
  rank.status->act("forward", 3);
}

void receive_from_self(RankContext& rank) {
  int never = 0;
  rank.world->recv({&never, DType::i32, {1}}, rank.rank, {}).join();
}

constexpr std::int64_t kLong = 1 << 20;  // elements: a transfer takes longer than all between two

void sum_on_and_on(ProcessGroup& world) {
  std::vector<float> x(kLong);
  for (;;) world.all_reduce({x.data(), DType::f32, {kLong}}, ReduceOp::sum, {}).join();
}

// Each to the next in a ring.
void pass_on_and_on(ProcessGroup& world) {
  std::vector<float> out(kLong), in(kLong);
  const int size = world.size();
  for (;;) {
    Work sent = world.send({out.data(), DType::f32, {kLong}}, (world.rank() + 1) % size, {});
    world.recv({in.data(), DType::f32, {kLong}}, (world.rank() + size - 1) % size, {}).join();
    sent.join();
  }
}

void work_until_rank_1_is_killed(RankContext& rank, void (*work)(ProcessGroup&)) {
  be_at_step_12(rank);
  if (rank.rank == 1)
    std::thread([] {
      sleep_for(0.3);
      raise(SIGKILL);
    }).detach();
  work(*rank.world);
}

// What the chosen rank does; then all meet in a barrier, unless they leave.
const std::map<std::string, Way>& ways() {
  static const std::map<std::string, Way> all = {
      {"done", [](RankContext&) {}},
      {"runtime", [](RankContext&) { fail(ErrorKind::runtime, "step 3: the disk is full"); }},
      {"usage", [](RankContext&) { fail(ErrorKind::usage, "run.yaml:1:1: wrong"); }},
      {"stopped", [](RankContext&) { fail(ErrorKind::stopped, "step 3: stopped, all is saved"); }},
      {"runtime in a step",
       [](RankContext& rank) {
         be_at_step_12(rank);
         fail(ErrorKind::runtime, "the disk is full");
       }},
      {"exit in a step",
       [](RankContext& rank) {
         be_at_step_12(rank);
         std::exit(0);
       }},
      {"segv",
       [](RankContext& rank) {
         be_at_step_12(rank);
         raise(SIGSEGV);
       }},
      {"abrt",
       [](RankContext& rank) {
         be_at_step_12(rank);
         std::abort();
       }},
      {"bad_alloc", [](RankContext&) { throw std::bad_alloc(); }},
      {"logic", [](RankContext&) { throw std::logic_error("a vector is too short"); }},
      {"number", [](RankContext&) { throw 7; }},
      {"exit", [](RankContext&) { std::exit(0); }},
      {"quit", [](RankContext&) { _exit(0); }},
      {"kill", [](RankContext&) { raise(SIGKILL); }},
      {"kill in a sum", [](RankContext& rank) { work_until_rank_1_is_killed(rank, sum_on_and_on); }},
      {"kill in messages", [](RankContext& rank) { work_until_rank_1_is_killed(rank, pass_on_and_on); }},
      {"stop", [](RankContext&) { raise(SIGSTOP); }},
      {"sleep", [](RankContext&) { sleep_for(300); }},
      {"deadline", receive_from_self},
      {"own deadline",
       [](RankContext& rank) {
         rank.world->set_deadline(1);
         receive_from_self(rank);
       }},
      {"leave", [](RankContext& rank) { rank.world->set_deadline(1); }},
      {"mismatch",
       [](RankContext& rank) {
         std::int64_t x = 0;
         rank.world->all_reduce({&x, DType::i64, {1}}, ReduceOp::sum, {}).join();
       }},
      {"abort", [](RankContext& rank) { rank.world->abort(); }},
      {"who",
       [](RankContext& rank) {
         std::printf("%d of %d, %d of %d here, %s\n", rank.rank, rank.world_size, rank.local_rank,
                     rank.ranks_on_host, rank.origin.c_str());
       }},
      {"cores", [](RankContext& rank) { std::printf("%d cores\n", rank.cores_on_host); }},
      {"signal",
       [](RankContext&) {
         std::puts("ready");
         std::fflush(stdout);
         while (!stop_requested()) sleep_for(0.01);
         fail(ErrorKind::stopped, "stopped by a signal");
       }},
  };
  return all;
}

// This process is rank 0 of two and waits for rank 1, which is another one, whoever started it.
int wait_for_process(pid_t other) {
  const auto board = make_private_board(2);
  board->join_as_process(0);
  RankStatus& peer = board->of(1);
  peer.pid = other;
  peer.born = birth_of(other);
  peer.present = 1;
  board->of(0).deadline_s = 0.2;
  const ShownWait shown(board->of(0), "recv", "pp");
  const Monitor monitor({board, 0, true});
  sleep_for(300);
  return 0;
}

int run(int argc, char** argv) {
  if (argc < 3) return 9;
  if (argv[1] == std::string("wait for process")) return wait_for_process(std::atoi(argv[2]));
  LaunchOptions options;
  options.local_ranks = std::atoi(argv[1]);
  options.deadline_s = 5;
  const std::string way = argv[2];
  const int chosen = argc > 3 ? std::atoi(argv[3]) : -1;  // -1: all
  const bool others_compute = argc > 4;
  std::atomic<bool> is_first = false;
  const int code = launch(options, [&](RankContext& rank) {
    if (rank.rank == 0) is_first = true;
    if (chosen < 0 || rank.rank == chosen) ways().at(way)(rank);
    if (others_compute && rank.rank != chosen) sleep_for(300);
    if (way != "leave") rank.world->barrier();
  });
  if (code == 0 && is_first) std::puts("ended well");
  return code;
}

}  // namespace
}  // namespace hpt

int main(int argc, char** argv) {
  return hpt::run(argc, argv);
}
