// The order in which a rank meets its (micro-batch, chunk) pairs, shared by all schedules of this folder,
// which differ only in how many forwards come before the first backward.
#pragma once

#include <vector>

#include "schedule/pipeline_schedule.h"

namespace hpt {

// Forward or whole backward of one micro-batch through one chunk.
struct ChunkStep {
  bool is_forward = true;
  int micro_batch = 0;
  int chunk = 0;
};

// Micro-batches go in groups of p through chunk 0, then through chunk 1, ...; backward takes the chunks from
// the last (Narayanan et al., "Efficient large-scale language model training on GPU clusters using
// Megatron-LM", 2021). Place k of the order is the same pair on every rank. A last group of fewer than p
// keeps its empty places, so that warm-up counts them; they are left out of what with_warm_up returns.
// Leaving out whole micro-batches removes waits and adds none, so any m is as free of deadlock as a
// multiple of p.
int num_places(const PipelineShape& shape);
// `warm_up` forward places, then forward and backward in turn, then the backwards that are left.
std::vector<ChunkStep> with_warm_up(const PipelineShape& shape, int warm_up);

std::vector<ChunkStep> gpipe_steps(const PipelineShape& shape);
std::vector<ChunkStep> one_f_one_b_steps(const PipelineShape& shape, int rank);
std::vector<ChunkStep> interleaved_steps(const PipelineShape& shape, int rank);
std::vector<ChunkStep> forward_only_steps(const PipelineShape& shape);

}  // namespace hpt
