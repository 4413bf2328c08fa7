// A collective over shared memory. Each rank copies its data, a piece at a time, into its buffer; then either
//   - each reads what it needs from all buffers at once (gathers, broadcasts, small sums, sums of two), or
//   - each adds up its own slice of the piece over all buffers, then all copy the slices (large all_reduce).
// Two buffers let a rank copy the next piece in while others still read this one. Which way is taken depends
// on size and number of ranks only; both add in ascending rank order, so they give the same bits.
#pragma once

#include <vector>

#include "comm/shared_memory/shared_members.h"

namespace hpt {

struct CollectiveCall {
  OpHeader header;
  const char* in = nullptr;
  char* out = nullptr;
};

class SharedCollective final : public Op {
 public:
  explicit SharedCollective(std::shared_ptr<SharedMembers> members);

  // Takes the next place in the group's order of collectives.
  void set(const CollectiveCall& call);

  bool advance() override;
  std::string describe() const override;
  OpLabel label() const override;

 private:
  struct Range {
    std::size_t begin = 0;
    std::size_t count = 0;
  };

  // Pieces are counted within the op here and over the group's life in MemberBlock.
  std::uint64_t group_piece(std::uint64_t piece) const { return first_piece_ + piece; }
  bool is_turn(CounterOf counter, std::uint64_t piece) const;
  Range range_of(std::uint64_t piece) const;
  Range slice_of(Range range, int member) const;
  bool by_slices(std::uint64_t piece) const;

  bool fill_next();
  bool reduce_next();
  bool finish_next();
  void copy_in(std::uint64_t piece);
  void copy_in_for_reduce_scatter(std::uint64_t piece);
  void check_headers(std::uint64_t piece) const;
  void finish_whole(std::uint64_t piece);
  void reduce(std::uint64_t piece, Range range, std::size_t offset_in_buffer, char* out);
  void gather(std::uint64_t piece);
  void copy_slices(std::uint64_t piece);

  int late_member() const;
  bool is_root() const { return call_.header.root == members_->rank(); }
  std::size_t bytes(std::size_t num_elements) const { return num_elements * size_of(call_.header.dtype); }

  std::shared_ptr<SharedMembers> members_;
  CollectiveCall call_;
  std::uint64_t first_piece_ = 0;
  std::uint64_t num_pieces_ = 0;
  std::size_t piece_elements_ = 0;
  std::uint64_t filled_ = 0;
  std::uint64_t reduced_ = 0;
  std::uint64_t finished_ = 0;
  std::vector<const void*> sources_;
};

}  // namespace hpt
