// What one member of one group keeps in its share for the others to read. Only its owner writes it, but for
// Outbox::starved, which the receiver takes down.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "comm/op_kind.h"

namespace hpt {

// On a cache line of its own: peers wait on it.
struct alignas(64) SharedCounter {
  std::atomic<std::uint64_t> value{0};
};

// The stream of bytes from one member to another: a ring buffer in the sender's share,
// made at the first send.
struct alignas(64) Outbox {
  std::atomic<std::uint64_t> ring_offset{0};  // in the region; 0 until made
  std::uint64_t ring_bytes = 0;               // a power of two
  std::atomic<std::uint64_t> written{0};      // bytes ever put in
  std::atomic<std::uint32_t> starved{0};      // the sender waits for room
};

// A collective goes in pieces, counted over the life of the group: piece t uses buffer t % 2. A counter's
// value is the number of pieces that have passed.
struct MemberBlock {
  static constexpr std::size_t kBuffers = 2;

  SharedCounter filled;    // header and data of the piece lie in the buffer
  SharedCounter reduced;   // this member's slice of the result lies in the buffer
  SharedCounter finished;  // this member reads no one's buffers of that piece any more
  SharedCounter starved;   // 1 while this member waits for a buffer to be finished with
  alignas(64) std::array<OpHeader, kBuffers> headers;
  std::uint64_t buffers_offset = 0;  // in the region: kBuffers buffers
  // Behind it: Outbox to[size], SharedCounter taken_from[size] (bytes ever taken out of that
  // member's outbox to us).

  static std::size_t num_bytes(std::size_t size) {
    return sizeof(MemberBlock) + size * (sizeof(Outbox) + sizeof(SharedCounter));
  }
  Outbox& to(int member) { return reinterpret_cast<Outbox*>(this + 1)[member]; }
  SharedCounter& taken_from(int member, int size) {
    return reinterpret_cast<SharedCounter*>(&to(size))[member];
  }
};

static_assert(sizeof(MemberBlock) % 64 == 0 && sizeof(Outbox) % 64 == 0);

}  // namespace hpt
