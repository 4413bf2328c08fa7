#include "comm/shared_memory/region.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace hpt {
namespace {

constexpr std::size_t kHeaderBytes = 4096;
constexpr std::size_t kLargestBuffer = std::size_t{1} << 20;
constexpr std::size_t kAlignment = 64;

static_assert(sizeof(RegionHeader) <= kHeaderBytes);

}  // namespace

std::size_t RegionShape::num_bytes() const {
  return kHeaderBytes + static_cast<std::size_t>(num_ranks) * share_bytes;
}

std::size_t RegionShape::buffer_bytes() const {
  return std::min(kLargestBuffer, share_bytes / 32);
}

std::size_t Region::share_offset(int rank) const {
  return kHeaderBytes + static_cast<std::size_t>(rank) * shape_.share_bytes;
}

Region make_private_region(const RegionShape& shape) {
  const std::size_t bytes = shape.num_bytes();
  void* base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    fail(ErrorKind::runtime, "--local {}: no {} MiB of address space for the ranks' exchange: {}",
         shape.num_ranks, bytes >> 20, std::strerror(errno));
  std::shared_ptr<void> keep(base, [bytes](void* block) { munmap(block, bytes); });
  return Region(static_cast<char*>(base), shape, std::move(keep));
}

RegionShare::RegionShare(const Region& region, int rank)
    : begin_(region.share_offset(rank)), next_(begin_), end_(begin_ + region.shape().share_bytes) {}

std::size_t RegionShare::allocate(std::size_t num_bytes) {
  const std::size_t rounded = (num_bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (rounded > left())
    fail(ErrorKind::runtime, "shared memory of the ranks: {} bytes are left, {} are needed for another group",
         left(), rounded);
  const std::size_t offset = next_;
  next_ += rounded;
  return offset;
}

}  // namespace hpt
