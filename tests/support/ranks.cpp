#include "support/ranks.h"

#include <mutex>
#include <stdexcept>
#include <thread>

#include "comm/thread/thread_world.h"

namespace hpt::testing {
namespace {

std::vector<RankFailure> run_as_threads(const RankRun& run, const RankBody& body) {
  auto worlds = make_thread_worlds(run.num_ranks, run.deadline_s);
  std::vector<std::vector<RankFailure>> of_rank(worlds.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < worlds.size(); ++rank)
    threads.emplace_back([&, rank] { of_rank[rank] = run_one_rank(*worlds[rank], body); });
  for (std::thread& thread : threads) thread.join();
  std::vector<RankFailure> all;
  for (const auto& failures : of_rank) all.insert(all.end(), failures.begin(), failures.end());
  return all;
}

RankRunner& runner() {
  static RankRunner current = run_as_threads;
  return current;
}

std::vector<int>& more_hosts() {
  static std::vector<int> ranks_per_host;
  return ranks_per_host;
}

}  // namespace

bool also_run_on_hosts_of(std::vector<int> ranks_per_host) {
  more_hosts() = std::move(ranks_per_host);
  return true;
}
const std::vector<int>& more_ranks_per_host() {
  return more_hosts();
}

void use_rank_runner(RankRunner other) {
  runner() = std::move(other);
}

std::vector<RankFailure> run_one_rank(ProcessGroup& world, const RankBody& body) {
  RankFailure failure{world.rank(), ErrorKind::runtime, ""};
  try {
    body(world);
    return {};
  } catch (const Error& error) {
    failure.kind = error.kind();
    failure.message = error.what();
  } catch (const std::exception& error) {
    failure.message = error.what();
  }
  world.abort();
  return {failure};
}

std::vector<RankFailure> failures_of(const RankRun& run, const RankBody& body) {
  return runner()(run, body);
}

void run_ranks(int num_ranks, const RankBody& body) {
  RankRun run;
  run.num_ranks = num_ranks;
  const std::vector<RankFailure> failures = failures_of(run, body);
  std::string reasons;
  for (const RankFailure& failure : failures)
    if (failure.kind != ErrorKind::aborted) reasons += format("\nrank {}: {}", failure.rank, failure.message);
  if (reasons.empty() && !failures.empty()) reasons = "\na rank aborted the others without a reason";
  if (!reasons.empty()) throw std::runtime_error(format("of {} ranks failed:{}", num_ranks, reasons));
}

}  // namespace hpt::testing
