// StepReporter: tells of a run's progress, on rank 0 alone: console and log.txt, metrics.jsonl and
// TensorBoard. One metrics line for each step that is a multiple of log.every, and for the last one.
#pragma once

#include <cstdint>
#include <memory>

#include "core/clock.h"
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
  double checkpoint_pause_s = 0;  // since the last report
};

class StepReporter {
 public:
  // plan, folder and log outlive the reporter; `clock` tells seconds.
  StepReporter(const RunPlan& plan, const RunFolder& folder, Log& log, std::int64_t memory_peak_bytes,
               double (*clock)() = seconds_now);

  // The run begins, after `steps_done` steps of an earlier one.
  void start_clock(std::int64_t steps_done = 0);
  // After every step, logged or not.
  void step(const StepReport& report);
  // Its time is not counted as the steps'.
  void evaluation(std::int64_t step, double valid_loss, double seconds);
  // Time since the last step that is not the steps'.
  void leave_out(double seconds);

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
  double (*clock_)();
  // Times of the start and of the last logged step, moved on by the evaluations since.
  double first_time_ = 0;
  double last_time_ = 0;
  std::int64_t steps_before_ = 0;  // the start
  std::int64_t last_step_ = 0;
  double pause_s_ = 0;       // since the last logged step
  double step_seconds_ = 0;  // mean since the start
};

}  // namespace hpt
