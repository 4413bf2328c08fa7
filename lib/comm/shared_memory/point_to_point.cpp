#include "comm/shared_memory/point_to_point.h"

#include <algorithm>
#include <cstring>

#include "comm/shared_memory/shared_copy.h"

namespace hpt {
namespace {

constexpr std::size_t kStep = std::size_t{128} << 10;  // bytes that are shown to the receiver together
constexpr std::uint64_t kAlignment = 32;  // headers start on it, so that none is torn by the ring's end

static_assert(sizeof(OpHeader) <= kAlignment);

std::uint64_t padded(std::uint64_t num_bytes) {
  return (num_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Copies to or from the ring at `position` of the stream, around its end.
void copy_around(char* ring, std::uint64_t ring_bytes, std::uint64_t position, std::uint64_t count,
                 const auto& copy_part) {
  const std::uint64_t at = position & (ring_bytes - 1);
  const std::uint64_t before_end = std::min(count, ring_bytes - at);
  copy_part(ring + at, std::uint64_t{0}, before_end);
  if (before_end < count) copy_part(ring, before_end, count - before_end);
}

}  // namespace

void SharedMessage::set(const MessageCall& call) {
  call_ = call;
  call_.turn = turns().take();
  has_header_ = false;
  num_done_ = 0;
}

OpLabel SharedMessage::label() const {
  return {name_of(call_.header.kind), members_->name(), members_->world_rank(call_.peer)};
}

std::string SharedMessage::describe() const {
  return format("group {}: {} waits for rank {}", members_->name(), to_string(call_.header),
                members_->world_rank(call_.peer));
}

// The first send to a peer makes the stream.
void SharedSend::make_ring(Outbox& box) {
  const RingPlace ring = take_ring(members_->host().share);
  if (ring.num_bytes == 0)
    fail(ErrorKind::runtime, "rank {}: group {}: no shared memory is left for a first send to rank {}",
         members_->engine().world_rank(), members_->name(), members_->world_rank(call_.peer));
  box.ring_bytes = ring.num_bytes;
  box.ring_offset.store(ring.offset, std::memory_order_relaxed);  // shown by the first `written`
}

// Free bytes of the ring; when there are none the receiver is asked to ring.
std::uint64_t SharedSend::room(Outbox& box) {
  const std::atomic<std::uint64_t>& taken =
      members_->block(call_.peer).taken_from(members_->rank(), members_->size()).value;
  const std::uint64_t written = box.written.load(std::memory_order_relaxed);
  std::uint64_t free = box.ring_bytes - (written - taken.load());
  if (free == 0) {
    box.starved.store(1);
    free = box.ring_bytes - (written - taken.load());
  }
  return free;
}

void SharedSend::publish(Outbox& box, std::uint64_t written) {
  box.written.store(written);
  members_->ring(call_.peer);
}

bool SharedSend::advance() {
  if (!turns().is(call_.turn)) return false;
  Outbox& box = outbox();
  if (box.ring_bytes == 0) make_ring(box);
  char* ring = members_->host().region.at(box.ring_offset.load(std::memory_order_relaxed));
  std::uint64_t written = box.written.load(std::memory_order_relaxed);
  if (!has_header_) {
    if (room(box) == 0) return false;
    std::memcpy(ring + (written & (box.ring_bytes - 1)), &call_.header, sizeof(OpHeader));
    has_header_ = true;
    written += kAlignment;
    if (call_.header.num_elements == 0)
      publish(box, written);
    else
      box.written.store(written);
  }
  const std::uint64_t total = call_.header.num_bytes();
  while (num_done_ < total) {
    // Room comes in whole alignments, so the padding of the last part fits too.
    const std::uint64_t count = std::min({total - num_done_, room(box), std::uint64_t{kStep}});
    if (count == 0) return false;
    copy_around(ring, box.ring_bytes, written, count,
                [&](char* to, std::uint64_t offset, std::uint64_t part) {
                  copy_to_shared(to, call_.data + num_done_ + offset, part);
                });
    num_done_ += count;
    written += padded(count);
    publish(box, written);
  }
  turns().pass();
  return true;
}

void SharedRecv::check(const OpHeader& sent) const {
  if (sent.num_elements == call_.header.num_elements && sent.dtype == call_.header.dtype) return;
  fail(ErrorKind::runtime, "rank {}: group {}: {} here meets {} on rank {}", members_->engine().world_rank(),
       members_->name(), to_string(call_.header), to_string(sent), members_->world_rank(call_.peer));
}

void SharedRecv::free_room(Outbox& box, std::uint64_t taken) {
  members_->own().taken_from(call_.peer, members_->size()).value.store(taken);
  if (box.starved.load() != 0 && box.starved.exchange(0) != 0) members_->ring(call_.peer);
}

bool SharedRecv::advance() {
  if (!turns().is(call_.turn)) return false;
  Outbox& box = members_->block(call_.peer).to(members_->rank());
  std::uint64_t taken =
      members_->own().taken_from(call_.peer, members_->size()).value.load(std::memory_order_relaxed);
  std::uint64_t written = box.written.load();
  if (written == 0) return false;
  char* ring = members_->host().region.at(box.ring_offset.load(std::memory_order_relaxed));
  if (!has_header_) {
    if (written == taken) return false;
    OpHeader sent;
    std::memcpy(&sent, ring + (taken & (box.ring_bytes - 1)), sizeof(OpHeader));
    check(sent);
    has_header_ = true;
    taken += kAlignment;
    free_room(box, taken);
  }
  const std::uint64_t total = call_.header.num_bytes();
  while (num_done_ < total) {
    const std::uint64_t count = std::min({total - num_done_, written - taken, std::uint64_t{kStep}});
    if (count == 0) return false;
    copy_around(ring, box.ring_bytes, taken, count,
                [&](char* from, std::uint64_t offset, std::uint64_t part) {
                  std::memcpy(call_.data + num_done_ + offset, from, part);
                });
    num_done_ += count;
    taken += padded(count);
    free_room(box, taken);
    written = box.written.load();
  }
  turns().pass();
  return true;
}

}  // namespace hpt
