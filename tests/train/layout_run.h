// Trains a small model in some layout on ranks that are threads, and gathers what every rank holds into whole
// tensors: what layouts are compared by.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "support/reference_gpt.h"
#include "train/rank_engine.h"

namespace hpt::testing {

// Samples made up from their ordinal: tokens and labels in range; `masked` leaves out about a third of the
// labels, and all of every fifth sample's.
struct MadeUpData {
  std::int64_t seq_length = 0;
  std::int64_t vocab_size = 0;
  bool masked = false;

  int token(std::int64_t ordinal, std::int64_t position) const;
  int label(std::int64_t ordinal, std::int64_t position) const;
  std::int64_t count_predicted(std::int64_t first, std::int64_t count) const;
  void load(const MicroBatch& into, std::int64_t first_ordinal) const;
};

struct LayoutResult {
  std::vector<double> losses;  // of each step
  std::vector<double> norms;
  std::vector<reference::Parameters> gradients;  // of each step, before clipping
  reference::Parameters initial;
  reference::Parameters parameters;  // after the last step
  std::vector<std::string> faults;   // replicas that differ, elements without an owner or with no value
};

struct LayoutRun {
  RunConfig config;  // resolved: dp, kv_heads, ffn_hidden given
  MadeUpData data;
  double lr = 0.1;  // constant
  PlanOptions plan;
  // Called on every rank, without a lock, after each step.
  std::function<void(RankEngine& engine, std::int64_t step)> between_steps;
};

LayoutResult train_in_layout(const LayoutRun& run);

// The tiny GPT that layouts are compared on: 4 layers, hidden 32, 4 heads, 2 kv heads, ffn 64, vocabulary 61
// (prime), sequence 16, global batch 12, 10 steps; fp64; SGD without clipping, which hides no wrong scale.
RunConfig case_t();

// The schedules that this version runs and that a layout with so many virtual stages is for.
std::vector<std::string> schedules_for(int virtual_stages);

}  // namespace hpt::testing
