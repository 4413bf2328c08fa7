#include "comm/recording/recording_group.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "comm/checked_group.h"
#include "comm/engine/split.h"
#include "comm/shared_memory/shared_members.h"

namespace hpt {
namespace {

// What the groups of one rank have in common.
struct RecordedRank {
  RecordedRank(std::shared_ptr<Recording> into, int per_host)
      : recording(std::move(into)), ranks_per_host(per_host), share(Region(nullptr, shape, nullptr), 0) {
    take_doorbell(share);
  }

  std::shared_ptr<Recording> recording;
  int ranks_per_host;
  RegionShape shape{1, kLargestShare};
  RegionShare share;  // of memory that is not there
  RankStatus status;
};

class RecordingGroup final : public CheckedGroup {
 public:
  // `members`: world ranks, in group order.
  RecordingGroup(std::string name, int rank, std::vector<int> members, std::shared_ptr<RecordedRank> shared)
      : name_(std::move(name)), rank_(rank), members_(std::move(members)), shared_(std::move(shared)) {
    if (is_on_one_host()) take_member_block(shared_->share, shared_->shape, size());
    tell_exchange();
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  const std::string& name() const override { return name_; }

  std::unique_ptr<ProcessGroup> split(const std::string& name,
                                      const std::vector<std::vector<int>>& partition) override {
    const std::vector<int>& part = own_part(name, partition, rank_, size());
    std::vector<int> members;
    members.reserve(part.size());
    for (const int place : part) members.push_back(members_[static_cast<std::size_t>(place)]);
    return std::make_unique<RecordingGroup>(name, place_of(rank_, part), std::move(members), shared_);
  }
  void set_deadline(double) override {}  // nothing is waited for
  double deadline() const override { return 0; }
  std::size_t exchange_bytes() const override { return shared_->recording->exchange_bytes; }
  RankStatus& status() override { return shared_->status; }
  void abort() override {}

 private:
  Work start_collective(const OpHeader& header, const void*, void*, const Stream&) override {
    const bool in_parts = header.kind == OpKind::all_gather || header.kind == OpKind::reduce_scatter;
    return record(header, in_parts ? size() : 1, header.kind == OpKind::broadcast ? header.root : -1);
  }
  Work start_message(const OpHeader& header, void*, int peer, const Stream&) override {
    if (header.kind == OpKind::send && is_on_one_host() && sent_to_.insert(peer).second) {
      take_ring(shared_->share);
      tell_exchange();
    }
    return record(header, 1, peer);
  }
  Work record(const OpHeader& header, int num_parts, int peer) {
    const auto bytes = static_cast<std::int64_t>(header.num_bytes()) * num_parts;
    shared_->recording->ops.push_back({name_, size(), header.kind, bytes, peer});
    return {};
  }

  bool is_on_one_host() const {
    const int per_host = shared_->ranks_per_host;
    return per_host == 0 || std::all_of(members_.begin(), members_.end(), [&](int member) {
             return member / per_host == members_.front() / per_host;
           });
  }
  void tell_exchange() const { shared_->recording->exchange_bytes = shared_->share.used(); }

  std::string name_;
  int rank_;
  std::vector<int> members_;
  std::shared_ptr<RecordedRank> shared_;
  std::set<int> sent_to_;
};

}  // namespace

std::unique_ptr<ProcessGroup> make_recording_world(int rank, int size, std::shared_ptr<Recording> recording,
                                                   int ranks_per_host) {
  std::vector<int> members(static_cast<std::size_t>(size));
  std::iota(members.begin(), members.end(), 0);
  return std::make_unique<RecordingGroup>(
      "world", rank, std::move(members),
      std::make_shared<RecordedRank>(std::move(recording), ranks_per_host));
}

}  // namespace hpt
