// PipelineSchedule: the action lists of all ranks of one pipeline, made from plain numbers. A schedule function
// returns compute actions only; passes add communication and reductions; check() proves the whole before it runs.
#pragma once

#include <string>
#include <vector>

#include "schedule/pipeline_action.h"

namespace hpt {

struct PipelineShape {
  int num_ranks = 1;         // p
  int num_chunks = 1;        // v, chunks a rank
  int num_micro_batches = 1; // m
};

enum class PipelineScheduleKind { gpipe, one_f_one_b, interleaved, forward_only };

// A rank's own view of its chunks, for the passes: how many units each chunk holds, and which bucket of the gradient
// buffer each unit belongs to (buckets are numbered in the order in which backward fills them: from the last chunk's
// last unit down).
struct ChunkUnits {
  std::vector<int> bucket_of_unit;
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

// Compute actions of every rank, whole chunks: unit_end of rank r's chunk c is units[r].chunks[c]'s count.
PipelineSchedule make_schedule(PipelineScheduleKind kind, const PipelineShape& shape,
                               const std::vector<RankUnits>& units);

// Adds sends and receives: each receive is posted before the compute action that comes before its use, each send is
// started as soon as its data is made and waited for before its buffer is needed again.
void add_communication(PipelineSchedule& schedule);

// Cuts the last micro-batch's backward of each chunk at bucket borders and starts each bucket's reduction as soon as
// its last gradient has landed; adds the tied table's exchange; waits for all at the end.
void add_reductions(PipelineSchedule& schedule, const std::vector<RankUnits>& units);

// Turns each backward_input of several units that its backward_weight follows into a pair a unit, last unit first, so
// that what lies between the two is kept for one unit at a time.
void split_backward_by_unit(PipelineSchedule& schedule);

// Runs all lists against each other without data. Returns the first fault in words, or "" when: no rank blocks for
// ever, every receive meets its send, every chunk runs each micro-batch forward and backward exactly once and in the
// data's order, every bucket is reduced once after its last gradient, micro-batches land in ascending order per chunk.
std::string check_schedule(const PipelineSchedule& schedule, const std::vector<RankUnits>& units);

// Most micro-batches that chunk `chunk` of `rank` keeps between forward and backward at one time.
int peak_kept(const PipelineSchedule& schedule, int rank, int chunk);
// Most (micro-batch, chunk) pairs that a rank keeps at one time, over its chunks.
int peak_kept(const PipelineSchedule& schedule, int rank);

// A text grid: a row a rank, time to the right, with durations (in slots) for forward and backward of one chunk.
std::string print_schedule(const PipelineSchedule& schedule, int forward_slots = 1, int backward_slots = 2);

struct SimulatedTime {
  double total = 0;           // of the slowest rank
  double bubble_share = 0;    // idle time of all ranks / (p * total)
};
// Gives every compute action its duration (seconds for a whole chunk, by [rank][chunk]) and lets them wait for data.
SimulatedTime simulate(const PipelineSchedule& schedule, const std::vector<std::vector<double>>& forward_seconds,
                       const std::vector<std::vector<double>>& backward_seconds);

}  // namespace hpt
