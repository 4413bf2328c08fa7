// StepTracer: log.trace_steps. Writes down what every rank does in the chosen steps, brings it to rank 0 on
// one clock, and leaves trace-000100.json and a table of where the time went. Called by all ranks alike;
// without steps to trace it does nothing.
#pragma once

#include "core/log.h"
#include "train/rank_engine.h"
#include "train/run_folder.h"

namespace hpt {

class StepTracer {
 public:
  // References outlive the tracer; `folder` on rank 0 only.
  StepTracer(const RunConfig& config, RankEngine& engine, const RunFolder* folder, Log& log);

  bool is_traced(std::int64_t step) const;
  // Around a traced step; nothing else may be in flight.
  void begin();
  void end(std::int64_t step);

 private:
  const RunConfig& config_;
  RankEngine& engine_;
  const RunFolder* folder_;
  Log& log_;
  std::size_t capacity_ = std::size_t{1} << 16;  // events of a rank
  double begin_s_ = 0;
};

}  // namespace hpt
