#include "comm/mpi/mpi_world.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "comm/mpi/mpi_abort.h"
#include "comm/mpi/mpi_ranks.h"
#include "comm/shared_memory/shared_group.h"

namespace hpt {
namespace {

// What each rank tells all others before there is a group.
struct Introduction {
  std::int32_t host = 0;    // world rank that stands for it
  std::int32_t place = 0;   // on the host
  bool lacks = false;       // it has a line to tell: /dev/shm is too small
  std::uint64_t block = 0;  // offset of the MemberBlock for a world on one host
};

std::vector<Introduction> introduce(const MpiComm& comm, Introduction own) {
  std::vector<Introduction> all(static_cast<std::size_t>(comm.size()));
  check_mpi(MPI_Allgather(&own, sizeof(own), MPI_BYTE, all.data(), sizeof(own), MPI_BYTE, comm.get()),
            "finding the other ranks");
  return all;
}

Membership world_members(const std::vector<Introduction>& all, int rank) {
  Membership members;
  members.name = "world";
  members.rank = rank;
  members.world_ranks.resize(all.size());
  std::iota(members.world_ranks.begin(), members.world_ranks.end(), 0);
  members.host_places.reserve(all.size());
  for (const Introduction& one : all) members.host_places.push_back(one.place);
  return members;
}

}  // namespace

std::unique_ptr<ProcessGroup> make_mpi_world_over(MPI_Comm comm, const MpiWorldOptions& options) {
  const auto world = std::make_shared<MpiComm>(comm);
  const MpiHost found = make_mpi_host(*world, options);
  const auto host = std::make_shared<HostRank>(
      found.region, found.place,
      EngineOptions{world->rank(), options.deadline_s, found.spins, options.board});
  const bool spans_hosts = found.region.shape().num_ranks < world->size();
  const std::size_t block = spans_hosts ? 0 : host->make_member_block(world->size());
  const auto all = introduce(*world, {found.leader, found.place, !found.lack.empty(), block});
  // Hosts are most often alike: one speaks for all.
  const auto speaker = std::find_if(all.begin(), all.end(), [](const auto& one) { return one.lacks; });
  if (speaker - all.begin() == world->rank()) std::fprintf(stderr, "%s\n", found.lack.c_str());
  Membership members = world_members(all, world->rank());
  if (!spans_hosts) {
    std::vector<std::size_t> blocks;
    blocks.reserve(all.size());
    for (const Introduction& one : all) blocks.push_back(one.block);
    return std::make_unique<SharedMemoryGroup>(
        std::make_shared<SharedMembers>(host, std::move(members), blocks));
  }
  MpiRank rank{world, host, {}, 2};
  for (const Introduction& one : all) rank.host_of.push_back(one.host);
  const auto shared_rank = std::make_shared<MpiRank>(std::move(rank));
  carry_aborts(shared_rank);
  return std::make_unique<MpiGroup>(
      std::make_shared<MpiMembers>(MpiMembers{std::move(members), shared_rank, 1}));
}

std::unique_ptr<ProcessGroup> make_mpi_world(double deadline_s, std::shared_ptr<StatusBoard> board) {
  MpiWorldOptions options;
  options.deadline_s = deadline_s;
  options.board = std::move(board);
  return make_mpi_world_over(MPI_COMM_WORLD, options);
}

}  // namespace hpt
