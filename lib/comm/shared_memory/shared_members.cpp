#include "comm/shared_memory/shared_members.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace hpt {
namespace {

constexpr std::size_t kLargestRing = std::size_t{4} << 20;
constexpr std::size_t kSmallestRing = 4096;

// The doorbells stand first in the shares.
Doorbell* bell_of(const Region& region, int place) {
  return std::launder(reinterpret_cast<Doorbell*>(region.at(region.share_offset(place))));
}

HostSignals signals_of(const Region& region, int place) {
  HostSignals signals;
  signals.aborted = &region.header().aborted;
  for (int peer = 0; peer < region.shape().num_ranks; ++peer) signals.bells.push_back(bell_of(region, peer));
  signals.own = place;
  return signals;
}

}  // namespace

std::size_t take_doorbell(RegionShare& share) {
  return share.allocate(sizeof(Doorbell));
}

MemberPlace take_member_block(RegionShare& share, const RegionShape& shape, int group_size) {
  MemberPlace place;
  place.block = share.allocate(MemberBlock::num_bytes(static_cast<std::size_t>(group_size)));
  if (group_size > 1) place.buffers = share.allocate(MemberBlock::kBuffers * shape.buffer_bytes());
  return place;
}

// What is left of the share is shared fairly among later rings.
RingPlace take_ring(RegionShare& share) {
  const std::size_t bytes = std::bit_floor(std::min(kLargestRing, share.left() / 4));
  if (bytes < kSmallestRing) return {};
  return {share.allocate(bytes), bytes};
}

HostRank::HostRank(Region shared, int place, const EngineOptions& options)
    : region(std::move(shared)), share(region, place), engine(signals_of(region, place), options) {
  new (region.at(take_doorbell(share))) Doorbell;
}

std::size_t HostRank::make_member_block(int group_size) {
  const MemberPlace place = take_member_block(share, region.shape(), group_size);
  auto* block = new (region.at(place.block)) MemberBlock;
  for (int member = 0; member < group_size; ++member) {
    new (&block->to(member)) Outbox;
    new (&block->taken_from(member, group_size)) SharedCounter;
  }
  block->buffers_offset = place.buffers;
  return place.block;
}

SharedMembers::SharedMembers(std::shared_ptr<HostRank> host, Membership members,
                             const std::vector<std::size_t>& block_offsets)
    : host_(std::move(host)), members_(std::move(members)) {
  for (std::size_t offset : block_offsets) {
    blocks_.push_back(std::launder(reinterpret_cast<MemberBlock*>(host_->region.at(offset))));
    buffers_.push_back(host_->region.at(blocks_.back()->buffers_offset));
  }
}

char* SharedMembers::buffer(int member, std::uint64_t piece) const {
  return buffers_[static_cast<std::size_t>(member)] + piece % MemberBlock::kBuffers * buffer_bytes();
}

void SharedMembers::ring_others() const {
  for (int member = 0; member < size(); ++member)
    if (member != rank()) ring(member);
}

int SharedMembers::first_behind(CounterOf counter, std::uint64_t pieces) const {
  int member = 0;
  while (member < size() && (block(member).*counter).value.load() >= pieces) ++member;
  return member;
}

// Nobody can go on before the last member has passed, so only that one rings: counters are written and read
// in one order that all agree on (seq_cst), hence whoever writes last sees all others.
void SharedMembers::pass_for_all(CounterOf counter) {
  pass(counter);
  if (all_passed(counter, passed(counter))) ring_others();
}

void SharedMembers::finish_piece() {
  pass(&MemberBlock::finished);
  if (!all_passed(&MemberBlock::finished, passed(&MemberBlock::finished))) return;
  for (int member = 0; member < size(); ++member)
    if (member != rank() && block(member).starved.value.load() != 0) ring(member);
}

// The flag is up before the last look, so that no freeing is missed.
bool SharedMembers::buffer_is_free(std::uint64_t piece) {
  if (piece < MemberBlock::kBuffers) return true;
  const std::uint64_t needed = piece - MemberBlock::kBuffers + 1;
  std::atomic<std::uint64_t>& starved = own().starved.value;
  if (!all_passed(&MemberBlock::finished, needed)) {
    starved.store(1);
    if (!all_passed(&MemberBlock::finished, needed)) return false;
  }
  if (starved.load(std::memory_order_relaxed) != 0) starved.store(0, std::memory_order_relaxed);
  return true;
}

std::uint64_t SharedMembers::claim_pieces(std::uint64_t num_pieces) {
  return std::exchange(next_piece_, next_piece_ + num_pieces);
}

}  // namespace hpt
