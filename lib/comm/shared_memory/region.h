// The memory that the ranks of one host share, as threads or as processes. It may lie at another address in
// each of them, so it holds plain values, atomics and offsets, no pointers:
//
//   RegionHeader | share of rank 0 | share of rank 1 | ...
//
// A rank hands out its own share and tells the others the offsets; in another's share it only reads, but for
// doorbells and the like.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "comm/engine/doorbell.h"

namespace hpt {

struct RegionHeader {
  alignas(64) std::atomic<std::uint32_t> aborted{0};
};

// Of each rank, where its host has room for that.
inline constexpr std::size_t kLargestShare = std::size_t{64} << 20;

struct RegionShape {
  int num_ranks = 1;
  std::size_t share_bytes = 0;  // of each rank; a multiple of 4096

  std::size_t num_bytes() const;
  // What a rank puts in at a time in a collective; part of how an op is cut into pieces, so equal on all
  // ranks.
  std::size_t buffer_bytes() const;
};

// Copyable view; keeps the memory alive.
class Region {
 public:
  // `base`: num_bytes() of zeroed memory, 64-byte aligned, that `keep` owns.
  Region(char* base, const RegionShape& shape, std::shared_ptr<void> keep)
      : base_(base), shape_(shape), keep_(std::move(keep)) {}

  char* at(std::size_t offset) const { return base_ + offset; }
  std::size_t share_offset(int rank) const;
  RegionHeader& header() const { return *reinterpret_cast<RegionHeader*>(base_); }
  const RegionShape& shape() const { return shape_; }

 private:
  char* base_;
  RegionShape shape_;
  std::shared_ptr<void> keep_;
};

// Memory of this process for ranks that are its threads; takes pages only as they are touched.
Region make_private_region(const RegionShape& shape);

// Hands out one rank's share, front to back; a run makes its groups once and keeps them.
class RegionShare {
 public:
  RegionShare(const Region& region, int rank);

  // Offset in the region, a multiple of 64. Throws Error when the share is full.
  std::size_t allocate(std::size_t num_bytes);
  std::size_t left() const { return end_ - next_; }
  std::size_t used() const { return next_ - begin_; }

 private:
  std::size_t begin_;
  std::size_t next_;
  std::size_t end_;
};

}  // namespace hpt
