// MeasuredRank: what one rank of a plan will need and do, found by one step of the real RankEngine on the
// `meta` backend, without data, peers or memory. Training makes its arenas from it; a dry run prints it.
#pragma once

#include "comm/recording/recording_group.h"
#include "train/rank_engine.h"

namespace hpt {

// Bytes, by arena.
struct MemoryNeeds {
  std::size_t parameters = 0;
  std::size_t gradients = 0;
  std::size_t optimizer = 0;
  std::size_t activations = 0;
  std::size_t workspace = 0;
  std::size_t staging = 0;
  // Not an arena's: in the shared memory of the rank's host, where that has room for it.
  std::size_t exchange = 0;

  std::size_t arenas() const {
    return parameters + gradients + optimizer + activations + workspace + staging;
  }
};

struct MeasuredRank {
  MemoryNeeds memory;
  Recording step;  // what it communicates in one optimizer step
};

// `backend` is the one that will run; `stream` as it will be there. `ranks_per_host` neighbours share a host;
// 0: all do.
MeasuredRank measure_rank(const RunPlan& plan, int rank, const Backend& backend, const Stream& stream,
                          const PlanOptions& options = {}, int ranks_per_host = 0);

// Arenas of just that size, with memory of `backend`.
EngineArenas make_arenas(const MemoryNeeds& memory, const Backend& backend);
// The arenas that this rank needs, of just the measured sizes, with memory of `backend`.
EngineArenas measured_arenas(const RunPlan& plan, int rank, const Backend& backend, const Stream& stream,
                             const PlanOptions& options = {});

}  // namespace hpt
