#include <nlohmann/json.hpp>

#include "telemetry/append_file.h"
#include "telemetry/run_writers.h"

namespace hpt {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order they are given

std::string line_of(const Json& json) {
  return json.dump() + "\n";
}

}  // namespace

struct MetricsWriter::Impl {
  AppendFile file;
};

MetricsWriter::MetricsWriter(const std::string& path, Warn warn) : impl_(std::make_unique<Impl>()) {
  impl_->file.open(path, AppendFile::Open::any, std::move(warn));
}

MetricsWriter::~MetricsWriter() = default;

void MetricsWriter::step(const StepMetrics& metrics) {
  if (!impl_->file.on()) return;
  impl_->file.append(line_of({{"step", metrics.step},
                              {"loss", metrics.loss},
                              {"lr", metrics.lr},
                              {"grad_norm", metrics.grad_norm},
                              {"tokens", metrics.tokens},
                              {"step_time_s", metrics.step_time_s},
                              {"tokens_per_s", metrics.tokens_per_s},
                              {"tflops_per_rank", metrics.tflops_per_rank},
                              {"mfu", metrics.mfu ? Json(*metrics.mfu) : Json(nullptr)},
                              {"memory_peak_bytes", metrics.memory_peak_bytes},
                              {"skipped", metrics.skipped},
                              {"checkpoint_pause_s", metrics.checkpoint_pause_s}}));
}

std::optional<MetricsLine> parse_metrics_line(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  const auto step = json.is_object() ? json.find("step") : json.end();
  if (step == json.end() || !step->is_number_integer()) return std::nullopt;
  return MetricsLine{step->get<std::int64_t>(), json.contains("valid_loss")};
}

void MetricsWriter::evaluation(std::int64_t step, double valid_loss) {
  if (impl_->file.on()) impl_->file.append(line_of({{"step", step}, {"valid_loss", valid_loss}}));
}

}  // namespace hpt
