// DryRun: all that can be said of a run before it is launched. It is the real trainer's plan and, for each
// pipeline rank, the real rank of it on the `meta` backend with groups that only record: what is told here is
// what will run. Ranks that differ only along tp, cp or dp need and send the same.
//
// What this version can't run yet is named, and the rest is planned as the nearest thing that it can; the
// parameters of a family without layers are counted from its rows, its activations as a gpt's of these dims.
#pragma once

#include <string>
#include <vector>

#include "train/measured_rank.h"

namespace hpt {

// One rank's share in a step of what a group of ranks exchanges.
struct Traffic {
  std::string group;
  int group_size = 1;
  std::int64_t num_ops = 0;
  std::int64_t payload_bytes = 0;  // of the tensors handed to the group
  // What leaves the rank where sums and gathers go around a ring: 2 (n - 1) / n of the payload for an
  // all-reduce, (n - 1) / n for a gather or reduce-scatter, all of it for a send.
  std::int64_t sent_bytes = 0;
};

struct DryRank {
  int rank = 0;  // in the world: the pipeline rank's first
  std::vector<UnitRange> chunks;
  std::int64_t num_parameters = 0;  // of its layers, over all tp ranks; a tied table with the embedding
  MemoryNeeds memory;
  std::vector<Traffic> traffic;  // groups of one left out
};

struct DryRun {
  RunConfig config;                        // as asked for
  std::vector<std::string> not_supported;  // a line for each key that is planned as something else
  ModelSpec spec;                          // of the family that was asked for
  RunPlan plan;
  int ranks_per_host = 0;
  int num_threads = 0;
  std::vector<DryRank> ranks;  // by pipeline rank
  // Units take time as their FLOPs do, a backward twice a forward, messages none.
  SimulatedTime time;

  const DryRank& heaviest() const;
};

// The ranks of a host share this machine's cores, as far as run.threads is auto.
DryRun make_dry_run(const RunConfig& config, int ranks_per_host);

// For a terminal: many ranks and long schedules are cut.
std::string to_text(const DryRun& dry);

}  // namespace hpt
