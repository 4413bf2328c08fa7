// Open MPI puts a shared window into /dev/shm, and where that is too small one rank gets an error while the
// others wait for ever; so room is looked for first.
#include <sys/statvfs.h>

#include <algorithm>
#include <cstring>

#include "comm/engine/cores.h"
#include "comm/mpi/mpi_ranks.h"

namespace hpt {
namespace {

constexpr std::size_t kSmallestShare = std::size_t{1} << 20;
constexpr std::size_t kPage = 4096;

std::size_t free_shared_memory() {
  struct statvfs found {};
  if (statvfs("/dev/shm", &found) != 0) return 0;
  return static_cast<std::size_t>(found.f_bavail) * found.f_frsize;
}

// Ranks of one host, in the order of `world`.
MPI_Comm split_by_host(const MpiComm& world, int ranks_per_host) {
  MPI_Comm host = MPI_COMM_NULL;
  if (ranks_per_host > 0)
    check_mpi(MPI_Comm_split(world.get(), world.rank() / ranks_per_host, world.rank(), &host),
              "setting ranks apart");
  else
    check_mpi(MPI_Comm_split_type(world.get(), MPI_COMM_TYPE_SHARED, world.rank(), MPI_INFO_NULL, &host),
              "finding the ranks of this host");
  return host;
}

// Half of what is free, so that others find room too; 0 where that is too little. The first rank decides.
std::size_t choose_share_bytes(const MpiComm& host, std::size_t limit) {
  const std::size_t fair = std::min(free_shared_memory() / 2, limit) / static_cast<std::size_t>(host.size());
  std::uint64_t bytes = fair < kSmallestShare ? 0 : std::min(fair, kLargestShare) / kPage * kPage;
  check_mpi(MPI_Bcast(&bytes, 1, MPI_UINT64_T, 0, host.get()), "choosing the shared window's size");
  return bytes;
}

void free_window(MPI_Win window) {
  if (may_free_mpi()) MPI_Win_free(&window);
}

Region make_window(const MpiComm& host, const RegionShape& shape) {
  const bool first = host.rank() == 0;
  const std::size_t own_bytes = first ? shape.num_bytes() + kPage : 0;
  MPI_Win window = MPI_WIN_NULL;
  char* base = nullptr;
  check_mpi(MPI_Win_allocate_shared(static_cast<MPI_Aint>(own_bytes), 1, MPI_INFO_NULL, host.get(),
                                    static_cast<void*>(&base), &window),
            "making the shared window");
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  MPI_Aint bytes = 0;
  int unit = 0;
  check_mpi(MPI_Win_shared_query(window, 0, &bytes, &unit, static_cast<void*>(&base)),
            "finding the shared window");
  // MPI promises no alignment, and that of the first rank is not that of the others:
  // offsets go by pages in each.
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  std::uint64_t shift = (kPage - address % kPage) % kPage;
  check_mpi(MPI_Bcast(&shift, 1, MPI_UINT64_T, 0, host.get()), "aligning the shared window");
  HPT_REQUIRE((address + shift) % 64 == 0);
  if (first) std::memset(base + shift, 0, kPage);
  check_mpi(MPI_Barrier(host.get()), "making the shared window");
  return Region(base + shift, shape, std::shared_ptr<void>(base, [window](void*) { free_window(window); }));
}

int world_rank_of_first(const MpiComm& world, const MpiComm& host) {
  int leader = world.rank();
  check_mpi(MPI_Bcast(&leader, 1, MPI_INT, 0, host.get()), "finding the ranks of this host");
  return leader;
}

}  // namespace

int count_cores(MPI_Comm host) {
  CoreSet cores = allowed_cores();
  check_mpi(
      MPI_Allreduce(MPI_IN_PLACE, cores.data(), static_cast<int>(cores.size()), MPI_UINT64_T, MPI_BOR, host),
      "counting cores");
  return num_cores(cores);
}

MpiHost make_mpi_host(const MpiComm& world, const MpiWorldOptions& options) {
  MPI_Comm by_host = split_by_host(world, options.ranks_per_host);
  const MpiComm host(by_host);
  MPI_Comm_free(&by_host);
  const bool spins = options.ranks_per_host == 0 && count_cores(host.get()) >= host.size();
  const std::size_t share_bytes = host.size() > 1 ? choose_share_bytes(host, options.window_limit) : 0;
  if (share_bytes > 0)
    return {make_window(host, {host.size(), share_bytes}), host.rank(), spins,
            world_rank_of_first(world, host), ""};
  MpiHost alone{make_private_region({1, kLargestShare}), 0, spins, world.rank(), ""};
  if (host.size() > 1 && host.rank() == 0)
    alone.lack = format(
        "/dev/shm: {} MiB are free, too little for the shared window of {} ranks: they exchange by MPI "
        "messages, which is slower",
        std::min(free_shared_memory(), options.window_limit) >> 20, host.size());
  return alone;
}

}  // namespace hpt
