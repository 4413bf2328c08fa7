// SharedMembers: one rank's view of one group whose members all share a region.
#pragma once

#include <string>
#include <vector>

#include "comm/engine/progress_engine.h"
#include "comm/shared_memory/member_block.h"
#include "comm/shared_memory/region.h"

namespace hpt {

// What a rank takes of its share, in the order in which it does: once for itself, for each group, and for its
// first send to each peer. Offsets; nothing is touched.
std::size_t take_doorbell(RegionShare& share);
struct MemberPlace {
  std::size_t block = 0;
  std::size_t buffers = 0;  // 0 in a group of one
};
MemberPlace take_member_block(RegionShare& share, const RegionShape& shape, int group_size);
// The larger, the more is left; 0 where nothing is.
struct RingPlace {
  std::size_t offset = 0;
  std::size_t num_bytes = 0;  // a power of two
};
RingPlace take_ring(RegionShare& share);

// What a rank keeps once, for all its groups on its host.
struct HostRank {
  HostRank(Region shared, int place, const EngineOptions& options);

  // Makes this rank's MemberBlock of a group in its share; the offset is what the other members need.
  std::size_t make_member_block(int group_size);

  Region region;
  RegionShare share;
  ProgressEngine engine;
};

// The ranks of a group, in group order.
struct Membership {
  std::string name;
  int rank = 0;  // own place in the group
  std::vector<int> world_ranks;
  std::vector<int> host_places;  // where each stands among the ranks of the host
};

using CounterOf = SharedCounter MemberBlock::*;

class SharedMembers {
 public:
  SharedMembers(std::shared_ptr<HostRank> host, Membership members,
                const std::vector<std::size_t>& block_offsets);

  int rank() const { return members_.rank; }
  int size() const { return static_cast<int>(blocks_.size()); }
  const std::string& name() const { return members_.name; }
  int world_rank(int member) const { return members_.world_ranks[static_cast<std::size_t>(member)]; }
  const Membership& membership() const { return members_; }
  HostRank& host() const { return *host_; }
  const std::shared_ptr<HostRank>& shared_host() const { return host_; }
  ProgressEngine& engine() const { return host_->engine; }

  MemberBlock& block(int member) const { return *blocks_[static_cast<std::size_t>(member)]; }
  MemberBlock& own() const { return block(rank()); }
  char* buffer(int member, std::uint64_t piece) const;
  std::size_t buffer_bytes() const { return host_->region.shape().buffer_bytes(); }

  void ring(int member) const { engine().ring_peer(members_.host_places[static_cast<std::size_t>(member)]); }
  void ring_others() const;

  // Pieces that this member has passed.
  std::uint64_t passed(CounterOf counter) const {
    return (own().*counter).value.load(std::memory_order_relaxed);
  }
  // The first member that has not passed `pieces` pieces; size() if all have.
  int first_behind(CounterOf counter, std::uint64_t pieces) const;
  bool all_passed(CounterOf counter, std::uint64_t pieces) const {
    return first_behind(counter, pieces) == size();
  }

  // This member has passed one piece more. `pass` wakes no one, `pass_for_all` the others if they wait for
  // the last member and this was it, `finish_piece` those that wait for a buffer.
  void pass(CounterOf counter) { (own().*counter).value.store(passed(counter) + 1); }
  void pass_for_all(CounterOf counter);
  void finish_piece();
  // Whether this member's buffer for `piece` is free; if not, the one who frees it will ring.
  bool buffer_is_free(std::uint64_t piece);

  // Numbers the pieces of the next collective: the first of `num_pieces`.
  std::uint64_t claim_pieces(std::uint64_t num_pieces);

 private:
  std::shared_ptr<HostRank> host_;
  Membership members_;
  std::vector<MemberBlock*> blocks_;
  std::vector<char*> buffers_;
  std::uint64_t next_piece_ = 0;
};

}  // namespace hpt
