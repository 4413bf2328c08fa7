// PipelineSchedule: the action lists of all ranks of one pipeline, made from plain numbers. A schedule
// function returns compute actions only; passes add communication and reductions; check_schedule() proves the
// whole before it runs. make_run_plan() (train/run_plan.h) puts them together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schedule/pipeline_action.h"

namespace hpt {

struct PipelineShape {
  int num_ranks = 1;          // p
  int num_chunks = 1;         // v, chunks a rank
  int num_micro_batches = 1;  // m

  int num_stages() const { return num_ranks * num_chunks; }
  int stage(int rank, int chunk) const { return chunk * num_ranks + rank; }
  int rank_of(int stage) const { return stage % num_ranks; }
  int chunk_of(int stage) const { return stage / num_ranks; }
};

// The schedule of a pass without backward: what no config names.
inline constexpr std::string_view kForwardOnly = "forward_only";

// A rank's own view of its chunks, for the passes: how many units each chunk holds, and which bucket of the
// gradient buffer each unit belongs to (buckets are numbered in the order in which backward fills them: from
// the last chunk's last unit down).
struct ChunkUnits {
  std::vector<int> bucket_of_unit;  // -1: a unit without gradients of its own
};
struct RankUnits {
  std::vector<ChunkUnits> chunks;
  bool holds_tied_embedding = false;  // this rank has unit 0 of a tied model
  bool holds_tied_head = false;       // this rank has unit L + 1 of a tied model
  int tied_bucket = -1;               // bucket that holds the tied table; it waits for reduce_tied
};

struct PipelineSchedule {
  PipelineShape shape;
  std::vector<ActionList> ranks;
};

// Compute actions of every rank, whole chunks, by the schedule of this name (schedules/table.h, with what
// each keeps at most beside its function): unit_end of rank r's chunk c is units[r].chunks[c]'s count. Error
// of kind usage where there is none of this name, or it does not take so many chunks.
PipelineSchedule make_schedule(std::string_view name, const PipelineShape& shape,
                               const std::vector<RankUnits>& units);

// Adds sends and receives to a schedule of compute actions: each receive is posted before the compute
// action that comes before its use, each send is started as soon as its data is made and waited for before
// its buffer is needed again. Where stage s and s + 1 lie on one rank (p = 1) there are none: the data is
// handed over locally.
//
// Buffers that this promises to be enough, for each chunk: outputs 2, gradients of inputs 2, received
// gradients 2 (micro-batch k uses number k mod 2), received inputs peak_kept(rank, chunk) + 1 (k mod that); a
// gradient that is received or an input is free again after its micro-batch's last backward in the chunk.
// Messages from one rank to another match in order: the receiver posts in the sender's order, also where
// activations and gradients share the pair (p = 2).
void add_communication(PipelineSchedule& schedule);

// Cuts the last micro-batch's backward of each chunk at bucket borders and starts each bucket's reduction as
// soon as its last gradient has landed; adds the tied table's exchange; waits for all at the end. Comes after
// add_communication. The tied bucket is started last, when reduce_tied is over. A schedule without backward
// stays as it is.
void add_reductions(PipelineSchedule& schedule, const std::vector<RankUnits>& units);

// Turns each backward_input of several units that its backward_weight follows into a pair a unit, last unit
// first, so that what lies between the two is kept for one unit at a time.
void split_backward_by_unit(PipelineSchedule& schedule);

// Runs all lists (as both passes left them) against each other without data: a receive's wait ends when the
// matching send has started, a send's wait when the matching receive was posted, reduce_tied's when every
// holder has started it; nothing is buffered beyond what add_communication says. Returns the first fault in
// words, or "" when: no rank blocks for ever, every receive meets its send, every chunk runs each micro-batch
// forward and backward exactly once and in the data's order, every bucket is reduced once after its last
// gradient, micro-batches land in ascending order per chunk.
std::string check_schedule(const PipelineSchedule& schedule, const std::vector<RankUnits>& units);

// Most micro-batches that chunk `chunk` of `rank` keeps at one time, from a forward's start to its last
// backward's end (without a backward: to the forward's end).
int peak_kept(const PipelineSchedule& schedule, int rank, int chunk);
// Most (micro-batch, chunk) pairs that a rank keeps at one time, over its chunks.
int peak_kept(const PipelineSchedule& schedule, int rank);

// A text grid: a row a rank, time to the right, with durations (in ticks, at least 1) for forward and
// backward of one chunk; a letter tells chunks apart. The gradient leaves half-way through a backward of
// whole chunks, before the weights' part, and at the end of one that goes by units. Rows end with what has
// begun by column `max_columns`, and "..." where more follows.
std::string print_schedule(const PipelineSchedule& schedule, int forward_ticks = 1, int backward_ticks = 2,
                           std::size_t max_columns = std::string::npos);

struct SimulatedTime {
  double total = 0;         // of the slowest rank
  double bubble_share = 0;  // idle time of all ranks / (p * total)
};
// Gives every compute action its duration (seconds for a whole chunk, by [rank][chunk]; half of backward is
// backward_input, half backward_weight, and a part of a chunk takes its share by units) and lets them wait
// for data. Messages take no time; a send's wait lasts until its receive is posted.
SimulatedTime simulate(const PipelineSchedule& schedule,
                       const std::vector<std::vector<double>>& forward_seconds,
                       const std::vector<std::vector<double>>& backward_seconds);

}  // namespace hpt
