#include "train/agree.h"

#include <algorithm>
#include <array>
#include <cstring>

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

std::vector<std::string> hosts_of(ProcessGroup& world) {
  constexpr int kBytes = 64;
  std::array<char, kBytes> own{};
  const std::string name = host_name();
  std::memcpy(own.data(), name.data(), std::min<std::size_t>(name.size(), own.size() - 1));
  std::vector<char> all(own.size() * static_cast<std::size_t>(world.size()));
  world
      .all_gather({all.data(), DType::u8, {static_cast<std::int64_t>(all.size())}},
                  {own.data(), DType::u8, {kBytes}}, {})
      .join();
  std::vector<std::string> names;
  for (std::size_t at = 0; at < all.size(); at += own.size()) names.emplace_back(&all[at]);
  return names;
}

}  // namespace hpt
