#include "train/step_reporter.h"

#include <cmath>

#include "models/model_flops.h"

namespace hpt {
namespace {

std::string duration(double seconds) {
  const std::int64_t whole = std::llround(seconds);
  if (whole >= 3600) return format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return format("{}:{:02}", whole / 60, whole % 60);
}

Warn warn_through(Log& log) {
  return [&log](const std::string& line) { log.warn(line); };
}

}  // namespace

StepReporter::StepReporter(const RunPlan& plan, const RunFolder& folder, Log& log,
                           std::int64_t memory_peak_bytes, double (*clock)())
    : plan_(plan),
      log_(log),
      memory_peak_bytes_(memory_peak_bytes),
      tokens_per_step_(plan.config.batch.global * plan.config.model.seq_length),
      flops_per_step_and_rank_(model_flops_per_token(plan.spec) * static_cast<double>(tokens_per_step_) /
                               plan.mesh.world_size()),
      metrics_(folder.path("metrics.jsonl"), warn_through(log)),
      clock_(clock) {
  if (plan.config.log.tensorboard)
    tensorboard_ = std::make_unique<TensorBoardWriter>(folder.path("tensorboard"), warn_through(log));
  log_.info(std::string(kModelFlopsConvention));
}

void StepReporter::start_clock(std::int64_t steps_done) {
  steps_before_ = last_step_ = steps_done;
  if (tensorboard_ && steps_done > 0) tensorboard_->start_at(steps_done + 1);
  last_time_ = first_time_ = clock_();
}

StepMetrics StepReporter::metrics_of(const StepReport& report, double seconds) const {
  StepMetrics metrics;
  metrics.step = report.step;
  metrics.loss = report.loss;
  metrics.lr = report.lr;
  metrics.grad_norm = report.grad_norm;
  metrics.tokens = report.step * tokens_per_step_;
  metrics.step_time_s = seconds;
  metrics.tokens_per_s = static_cast<double>(tokens_per_step_) / seconds;
  metrics.tflops_per_rank = flops_per_step_and_rank_ / seconds / 1e12;
  metrics.memory_peak_bytes = memory_peak_bytes_;
  metrics.checkpoint_pause_s = pause_s_;
  return metrics;
}

std::string StepReporter::line_of(const StepMetrics& metrics) const {
  const std::int64_t left = plan_.config.run.steps - metrics.step;
  return format("step {:>{}}/{}  loss {:.4f}  lr {:.2e}  grad norm {:.3f}  {:.0f} tokens/s  {} left",
                metrics.step, std::to_string(plan_.config.run.steps).size(), plan_.config.run.steps,
                metrics.loss, metrics.lr, metrics.grad_norm, metrics.tokens_per_s,
                duration(static_cast<double>(left) * step_seconds_));
}

void StepReporter::step(const StepReport& report) {
  pause_s_ += report.checkpoint_pause_s;
  leave_out(report.checkpoint_pause_s);
  const std::int64_t every = plan_.config.log.every;
  const bool logged = every > 0 && (report.step % every == 0 || report.step == plan_.config.run.steps);
  if (!logged) return;
  const double now = clock_();
  const double seconds = (now - last_time_) / static_cast<double>(report.step - last_step_);
  last_time_ = now;
  last_step_ = report.step;
  step_seconds_ = (now - first_time_) / static_cast<double>(report.step - steps_before_);
  const StepMetrics metrics = metrics_of(report, seconds);
  pause_s_ = 0;
  log_.info(line_of(metrics));
  metrics_.step(metrics);
  if (!tensorboard_) return;
  tensorboard_->scalar("loss", metrics.step, metrics.loss);
  tensorboard_->scalar("lr", metrics.step, metrics.lr);
  tensorboard_->scalar("grad_norm", metrics.step, metrics.grad_norm);
  tensorboard_->scalar("tokens_per_s", metrics.step, metrics.tokens_per_s);
  tensorboard_->flush();
}

void StepReporter::evaluation(std::int64_t step, double valid_loss, double seconds) {
  log_.info(format("step {}: validation loss {:.4f}", step, valid_loss));
  metrics_.evaluation(step, valid_loss);
  if (tensorboard_) {
    tensorboard_->scalar("valid_loss", step, valid_loss);
    tensorboard_->flush();
  }
  leave_out(seconds);
}

void StepReporter::leave_out(double seconds) {
  first_time_ += seconds;
  last_time_ += seconds;
}

}  // namespace hpt
