// The order in which a rank meets its pairs of micro-batch and chunk, shared by all schedules that differ
// only in how many forwards come before the first backward.
#pragma once

#include "schedule/pipeline_schedule.h"

namespace hpt {

// Micro-batches go in groups of p through chunk 0, then through chunk 1, ...; backward takes the chunks from
// the last (Narayanan et al., "Efficient large-scale language model training on GPU clusters using
// Megatron-LM", 2021). Place k of the order is the same pair on every rank. A last group of fewer than p
// keeps its empty places, so that warm-up counts them; they are left out of what with_warm_up returns.
// Leaving out whole micro-batches removes waits and adds none, so any m is as free of deadlock as a
// multiple of p.
int num_places(const PipelineShape& shape);
// `warm_up` forward places, then forward and backward in turn, then the backwards that are left. Both halves
// of a backward come one right after the other.
ActionList with_warm_up(const PipelineShape& shape, int warm_up);

}  // namespace hpt
