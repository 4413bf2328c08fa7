// What a run leaves behind while it trains: metrics.jsonl and tensorboard/. Made on rank 0 only. A file that
// can't be written never stops training: one warning, then that writer is off.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace hpt {

struct StepMetrics {
  std::int64_t step = 0;  // 1-based
  double loss = 0;
  double lr = 0;
  double grad_norm = 0;
  std::int64_t tokens = 0;
  double step_time_s = 0;
  double tokens_per_s = 0;
  double tflops_per_rank = 0;
  std::optional<double> mfu;
  std::int64_t memory_peak_bytes = 0;
  bool skipped = false;
  double checkpoint_pause_s = 0;  // checkpoints held up the steps since the last line; not in step_time_s
};

using Warn = std::function<void(const std::string&)>;

// One JSON object a line, appended and flushed. Doubles are written so that reading them gives the same bits;
// what is not a finite number, which JSON has none of, is written as null.
class MetricsWriter {
 public:
  MetricsWriter(const std::string& path, Warn warn);
  ~MetricsWriter();
  void step(const StepMetrics& metrics);
  void evaluation(std::int64_t step, double valid_loss);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What a line of metrics.jsonl tells of; nothing where it is none, as one that was cut off.
struct MetricsLine {
  std::int64_t step = 0;
  bool is_evaluation = false;
};
std::optional<MetricsLine> parse_metrics_line(const std::string& line);

// TensorBoard event file in `folder`, which is made (TFRecords with masked CRC-32C); scalars only, as fp32.
// Records wait in memory for flush(), the destructor, or 64 KiB of them.
class TensorBoardWriter {
 public:
  TensorBoardWriter(const std::string& folder, Warn warn);
  ~TensorBoardWriter();
  // The run goes on with `step`: what an earlier run told of it and later ones is no longer shown.
  void start_at(std::int64_t step);
  void scalar(const std::string& tag, std::int64_t step, double value);
  void flush();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hpt
