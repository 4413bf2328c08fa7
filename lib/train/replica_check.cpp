#include "train/replica_check.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "core/hash.h"
#include "optim/distributed_optimizer.h"
#include "train/agree.h"

namespace hpt {
namespace {

// A place for every part of every tensor, the same on all ranks.
class Places {
 public:
  explicit Places(const RunPlan& plan)
      : rows_(plan.spec.rows), slots_(state_slots(plan.config.optimizer.type)) {
    for (const ParameterRow& row : rows_)
      for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
        first_.push_back(num_);
        num_ += row.split ? static_cast<std::size_t>(row.split->num_parts) : 1;
      }
  }

  std::size_t size() const { return num_; }
  std::size_t of(const StateTensor& tensor, int part) const {
    const auto row = static_cast<std::size_t>(tensor.row - rows_.data());
    const auto slot =
        static_cast<std::size_t>(std::find(slots_.begin(), slots_.end(), tensor.slot) - slots_.begin());
    return first_[row * slots_.size() + slot] + static_cast<std::size_t>(part);
  }
  std::string name_of(std::size_t place) const {
    const auto after = std::upper_bound(first_.begin(), first_.end(), place);
    const auto tensor = static_cast<std::size_t>(after - first_.begin() - 1);
    return state_name(rows_[tensor / slots_.size()], slots_[tensor % slots_.size()]);
  }

 private:
  const std::vector<ParameterRow>& rows_;
  std::vector<std::string_view> slots_;
  std::vector<std::size_t> first_;
  std::size_t num_ = 0;
};

// Never the least number, which stands for "holds none".
std::int64_t hash_of(const Tensor& tensor) {
  return static_cast<std::int64_t>(hash64(tensor.data, tensor.num_bytes()) >> 1U);
}

void all_reduce_max(std::vector<std::int64_t>& values, ProcessGroup& world) {
  world.all_reduce({values.data(), DType::i64, {static_cast<std::int64_t>(values.size())}}, ReduceOp::max, {})
      .join();
}

// What each rank of the world has at one place; -1: it holds none.
std::vector<std::int64_t> gathered(std::int64_t own, ProcessGroup& world) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(world.size()));
  world.all_gather({all.data(), DType::i64, {world.size()}}, {&own, DType::i64, {1}}, {}).join();
  return all;
}

// The ranks that are not of the largest group of holders that agree; all holders where no group is the
// largest.
std::vector<int> suspects(const std::vector<std::int64_t>& hashes) {
  std::map<std::int64_t, int> votes;
  for (const std::int64_t hash : hashes)
    if (hash >= 0) ++votes[hash];
  int most = 0;
  for (const auto& [hash, count] : votes) most = std::max(most, count);
  const auto num_with_most =
      std::count_if(votes.begin(), votes.end(), [&](const auto& vote) { return vote.second == most; });
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < hashes.size(); ++rank)
    if (hashes[rank] >= 0 && (num_with_most > 1 || votes[hashes[rank]] < most))
      ranks.push_back(static_cast<int>(rank));
  return ranks;
}

std::string fault_text(const std::string& name, const std::vector<std::int64_t>& hashes,
                       ProcessGroup& world) {
  const std::vector<std::string> hosts = hosts_of(world);
  const auto num_holders =
      std::count_if(hashes.begin(), hashes.end(), [](std::int64_t hash) { return hash >= 0; });
  const std::vector<int> named = suspects(hashes);
  std::string who;
  for (const int rank : named)
    who +=
        format("{}rank {} on host {}", who.empty() ? "" : ", ", rank, hosts[static_cast<std::size_t>(rank)]);
  if (static_cast<std::ptrdiff_t>(named.size()) == num_holders)
    return format("{}: the copies of {} differ, and should have the same bits", who, name);
  return format("{}: the copy of {} is not that of the {} other ranks that hold it", who, name,
                num_holders - static_cast<std::ptrdiff_t>(named.size()));
}

}  // namespace

std::string find_replica_fault(const RunPlan& plan, RankEngine& engine) {
  ProcessGroup& world = engine.mesh().world();
  const Places places(plan);
  std::vector<std::int64_t> own(places.size(), -1);
  const int tp_rank = engine.mesh().coordinate("tp");
  for (const StateTensor& tensor : engine.state()) {
    own[places.of(tensor, part_of(*tensor.row, tp_rank, plan.spec.tp))] = hash_of(tensor.value);
    world.status().beat();
  }
  // The largest hash of each place, and the smallest as the largest of what is left to the greatest number.
  std::vector<std::int64_t> extremes = own;
  for (const std::int64_t hash : own) extremes.push_back(hash < 0 ? -1 : INT64_MAX - hash);
  all_reduce_max(extremes, world);
  for (std::size_t place = 0; place < own.size(); ++place)
    if (extremes[place] != INT64_MAX - extremes[own.size() + place])
      return fault_text(places.name_of(place), gathered(own[place], world), world);
  return "";
}

}  // namespace hpt
