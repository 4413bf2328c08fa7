#include "train/straggler_watch.h"

#include <algorithm>

#include "core/clock.h"
#include "train/agree.h"

namespace hpt {
namespace {

double median_of(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace

std::vector<int> stragglers(std::span<const double> own_seconds, double factor) {
  constexpr double kNothing = 1e-3;
  const double median = median_of(own_seconds);
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < own_seconds.size(); ++rank)
    if (own_seconds[rank] > factor * median && own_seconds[rank] > median + kNothing)
      ranks.push_back(static_cast<int>(rank));
  return ranks;
}

StragglerWatch::StragglerWatch(double factor, int threads, const RankContext& rank, Log& log)
    : factor_(factor), world_(*rank.world), log_(log), hosts_(hosts_of(world_)), is_named_(hosts_.size()) {
  std::int64_t shares = rank.ranks_on_host * threads > rank.cores_on_host ? 1 : 0;
  world_.all_reduce({&shares, DType::i64, {1}}, ReduceOp::max, {}).join();
  is_on_ = shares == 0 && world_.size() > 1;
}

void StragglerWatch::start() {
  begin_s_ = seconds_now();
  waited_s_ = world_.status().waited_s;
}

void StragglerWatch::pause() {
  pause_begin_s_ = seconds_now();
  waited_before_s_ = world_.status().waited_s;
}

void StragglerWatch::go_on() {
  begin_s_ += seconds_now() - pause_begin_s_;
  waited_s_ += world_.status().waited_s - waited_before_s_;
}

void StragglerWatch::look(std::int64_t step, std::int64_t num_steps) {
  if (!is_on_) return;
  const double waited = world_.status().waited_s - waited_s_;
  double own = (seconds_now() - begin_s_ - waited) / static_cast<double>(num_steps);
  std::vector<double> all(hosts_.size());
  world_.all_gather({all.data(), DType::f64, {world_.size()}}, {&own, DType::f64, {1}}, {}).join();
  if (world_.rank() == 0) tell(step, all);
  start();
}

void StragglerWatch::tell(std::int64_t step, std::span<const double> own_seconds) {
  const std::vector<int> slow = stragglers(own_seconds, factor_);
  for (std::size_t rank = 0; rank < own_seconds.size(); ++rank) {
    const bool is_slow = std::binary_search(slow.begin(), slow.end(), static_cast<int>(rank));
    if (is_slow && !is_named_[rank])
      log_.warn(
          format("step {}: rank {} on host {} holds up the others: it works {:.3g} s a step where the median "
                 "rank works {:.3g} s",
                 step, rank, hosts_[rank], own_seconds[rank], median_of(own_seconds)));
    is_named_[rank] = is_slow;
  }
}

}  // namespace hpt
