#include "comm/thread/thread_world.h"

#include <algorithm>
#include <numeric>

#include "comm/engine/cores.h"
#include "comm/shared_memory/shared_group.h"

namespace hpt {
namespace {

// Address space, of which pages are taken when touched.
constexpr std::size_t kAllShares = std::size_t{4} << 30;
constexpr std::size_t kSmallestShare = std::size_t{4} << 20;

RegionShape shape_for(int size) {
  const std::size_t fair = kAllShares / static_cast<std::size_t>(size) / 4096 * 4096;
  return {size, std::clamp(fair, kSmallestShare, kLargestShare)};
}

Membership membership_of(int rank, int size) {
  Membership members;
  members.name = "world";
  members.rank = rank;
  members.world_ranks.resize(static_cast<std::size_t>(size));
  std::iota(members.world_ranks.begin(), members.world_ranks.end(), 0);
  members.host_places = members.world_ranks;
  return members;
}

}  // namespace

std::vector<std::unique_ptr<ProcessGroup>> make_thread_worlds(int size, double deadline_s,
                                                              std::shared_ptr<StatusBoard> board) {
  HPT_REQUIRE(size > 0);
  if (!board) board = make_private_board(size);
  for (int rank = 0; rank < size; ++rank) board->join_as_thread(rank);
  const Region region = make_private_region(shape_for(size));
  const bool spins = size <= num_cores(allowed_cores());
  std::vector<std::shared_ptr<HostRank>> hosts;
  std::vector<std::size_t> blocks;
  for (int rank = 0; rank < size; ++rank) {
    hosts.push_back(std::make_shared<HostRank>(region, rank, EngineOptions{rank, deadline_s, spins, board}));
    blocks.push_back(hosts.back()->make_member_block(size));
  }
  std::vector<std::unique_ptr<ProcessGroup>> worlds;
  for (int rank = 0; rank < size; ++rank) {
    auto& host = hosts[static_cast<std::size_t>(rank)];
    worlds.push_back(std::make_unique<SharedMemoryGroup>(
        std::make_shared<SharedMembers>(std::move(host), membership_of(rank, size), blocks)));
  }
  return worlds;
}

}  // namespace hpt
