#include "train/agree.h"

#include "core/error.h"
#include "core/host.h"

namespace hpt {

void require_same(const std::string& what, std::uint64_t fingerprint, const RankContext& rank) {
  auto first = static_cast<std::int64_t>(fingerprint);
  rank.world->broadcast({&first, DType::i64, {1}}, 0, {}).join();
  if (static_cast<std::uint64_t>(first) == fingerprint) return;
  fail(ErrorKind::usage,
       "rank {} on host {}: {} is not what rank 0 reads: give every rank the same command line, and every "
       "host the same files",
       rank.rank, host_name(), what);
}

std::int64_t largest(std::int64_t value, ProcessGroup& world) {
  world.all_reduce({&value, DType::i64, {1}}, ReduceOp::max, {}).join();
  return value;
}

}  // namespace hpt
