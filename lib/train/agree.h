// What all ranks must have in common before they train. Each reads the config and the data by itself, and a
// host may hold another file of the same name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/launch/world.h"

namespace hpt {

// Called by all ranks: an Error of kind usage on every rank whose `fingerprint` is not rank 0's, which names
// the rank, its host and `what` differs.
void require_same(const std::string& what, std::uint64_t fingerprint, const RankContext& rank);

// Called by all ranks: the largest of the ranks' values, on every rank.
std::int64_t largest(std::int64_t value, ProcessGroup& world);
// Called by all ranks: the host of each.
std::vector<std::string> hosts_of(ProcessGroup& world);

}  // namespace hpt
