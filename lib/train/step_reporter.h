// StepReporter: tells of a run's progress, on rank 0 alone: console and log.txt, metrics.jsonl and
// TensorBoard. One metrics line for each step that is a multiple of log.every, and for the last one.
#pragma once

#include <cstdint>
#include <memory>

#include "core/log.h"
#include "telemetry/run_writers.h"
#include "train/run_folder.h"
#include "train/run_plan.h"

namespace hpt {

struct StepReport {
  std::int64_t step = 0;
  double loss = 0;
  double lr = 0;
  double grad_norm = 0;
};

class StepReporter {
 public:
  // plan, folder and log outlive the reporter.
  StepReporter(const RunPlan& plan, const RunFolder& folder, Log& log, std::int64_t memory_peak_bytes);

  void start_clock();
  // After every step, logged or not.
  void step(const StepReport& report);
  void evaluation(std::int64_t step, double valid_loss);

 private:
  StepMetrics metrics_of(const StepReport& report, double seconds) const;
  std::string line_of(const StepMetrics& metrics) const;

  const RunPlan& plan_;
  Log& log_;
  std::int64_t memory_peak_bytes_;
  std::int64_t tokens_per_step_;
  double flops_per_step_and_rank_;
  MetricsWriter metrics_;
  std::unique_ptr<TensorBoardWriter> tensorboard_;
  double last_time_ = 0;  // of the last logged step
  std::int64_t last_step_ = 0;
  double step_seconds_ = 0;  // mean since then
  double first_time_ = 0;    // after the first step
};

}  // namespace hpt
