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

  std::size_t total() const { return parameters + gradients + optimizer + activations + workspace; }
};

struct MeasuredRank {
  MemoryNeeds memory;
  Recording step;  // what it communicates in one optimizer step
};

// `backend` is the one that will run; `stream` as it will be there.
MeasuredRank measure_rank(const RunPlan& plan, int rank, const Backend& backend, const Stream& stream,
                          const PlanOptions& options = {});

// The arenas that this rank needs, of just the measured sizes, with memory of `backend`.
EngineArenas measured_arenas(const RunPlan& plan, int rank, const Backend& backend, const Stream& stream,
                             const PlanOptions& options = {});

}  // namespace hpt
