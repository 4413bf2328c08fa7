#include "train/layout_run.h"

#include <cmath>
#include <mutex>

#include "config/schedule_rules.h"
#include "core/counter_rng.h"
#include "support/ranks.h"
#include "train/measured_rank.h"

namespace hpt::testing {
namespace {

std::uint64_t draw(std::int64_t ordinal, std::int64_t position, std::uint64_t what) {
  return CounterRng(7, RngPurpose::test, what)
      .bits64(static_cast<std::uint64_t>(ordinal), static_cast<std::uint64_t>(position));
}

double element(const Tensor& tensor, std::int64_t index) {
  return tensor.dtype == DType::f64 ? tensor.as<double>()[index] : tensor.as<float>()[index];
}

// Whole tensors, put together from every rank's parts.
class Gathered {
 public:
  explicit Gathered(const std::vector<ParameterRow>& rows) {
    for (const ParameterRow& row : rows)
      whole_[row.name].assign(static_cast<std::size_t>(row.shape.num_elements()), std::nan(""));
  }

  void add(const LocalParameter& parameter, const Tensor& tensor, std::vector<std::string>& faults) {
    const Shape& global = parameter.row->shape;
    const bool matrix = global.num_dims() == 2;
    const std::int64_t local_cols = matrix ? tensor.shape[1] : 1;
    std::vector<double>& whole = whole_[parameter.row->name];
    for (std::int64_t i = 0; i < tensor.shape[0]; ++i)
      for (std::int64_t j = 0; j < local_cols; ++j) {
        const double value = element(tensor, i * local_cols + j);
        if (i >= parameter.box.size[0] || (matrix && j >= parameter.box.size[1])) {
          if (value != 0) faults.push_back(parameter.row->name + ": padding is not zero");
          continue;
        }
        const std::int64_t row = parameter.box.offset[0] + i;
        const std::int64_t place = matrix ? row * global[1] + parameter.box.offset[1] + j : row;
        double& entry = whole[static_cast<std::size_t>(place)];
        if (!std::isnan(entry) && entry != value) faults.push_back(parameter.row->name + ": replicas differ");
        entry = value;
      }
  }

  reference::Parameters finish(std::vector<std::string>& faults) {
    for (const auto& [name, values] : whole_)
      for (const double value : values)
        if (std::isnan(value)) {
          faults.push_back(name + ": an element has no owner or no value");
          break;
        }
    return std::move(whole_);
  }

 private:
  reference::Parameters whole_;
};

}  // namespace

int MadeUpData::token(std::int64_t ordinal, std::int64_t position) const {
  return static_cast<int>(draw(ordinal, position, 1) % static_cast<std::uint64_t>(vocab_size));
}

int MadeUpData::label(std::int64_t ordinal, std::int64_t position) const {
  if (masked && (ordinal % 5 == 4 || draw(ordinal, position, 3) % 3 == 0)) return -1;
  return static_cast<int>(draw(ordinal, position, 2) % static_cast<std::uint64_t>(vocab_size));
}

std::int64_t MadeUpData::count_predicted(std::int64_t first, std::int64_t count) const {
  std::int64_t predicted = 0;
  for (std::int64_t ordinal = first; ordinal < first + count; ++ordinal)
    for (std::int64_t position = 0; position < seq_length; ++position)
      predicted += label(ordinal, position) >= 0 ? 1 : 0;
  return predicted;
}

void MadeUpData::load(const MicroBatch& into, std::int64_t first_ordinal) const {
  const std::int64_t b = into.num_sequences();
  for (std::int64_t j = 0; j < b; ++j) {
    into.ordinals.as<std::int64_t>()[j] = first_ordinal + j;
    for (std::int64_t i = 0; i < seq_length; ++i) {
      if (into.has_tokens()) into.tokens.as<std::int32_t>()[i * b + j] = token(first_ordinal + j, i);
      if (into.has_labels()) into.labels.as<std::int32_t>()[i * b + j] = label(first_ordinal + j, i);
    }
  }
}

LayoutResult train_in_layout(const LayoutRun& run) {
  const RunPlan plan = make_run_plan(run.config, run.plan);
  const std::int64_t steps = run.config.run.steps;
  LayoutResult result;
  std::mutex mutex;
  Gathered initial(plan.spec.rows);
  Gathered parameters(plan.spec.rows);
  std::vector<Gathered> gradients(static_cast<std::size_t>(steps), Gathered(plan.spec.rows));
  result.losses.resize(static_cast<std::size_t>(steps));
  result.norms.resize(static_cast<std::size_t>(steps));
  const LoadMicroBatch load = [&](const MicroBatch& into, std::int64_t first) { run.data.load(into, first); };

  run_ranks(plan.mesh.world_size(), [&](ProcessGroup& world) {
    const Stream stream;
    RankEngine engine(plan, world, cpu_backend(), stream,
                      measured_arenas(plan, world.rank(), cpu_backend(), stream, run.plan), run.plan);
    auto gather = [&](Gathered& into, Tensor LocalParameter::*which) {
      const std::lock_guard lock(mutex);
      for (const LocalParameter& parameter : engine.store().parameters())
        into.add(parameter, parameter.*which, result.faults);
    };
    gather(initial, &LocalParameter::value);
    for (std::int64_t step = 1; step <= steps; ++step) {
      StepInput input;
      input.step = step;
      input.first_ordinal = (step - 1) * run.config.batch.global;
      input.num_predicted = run.data.count_predicted(input.first_ordinal, run.config.batch.global);
      input.lr = run.lr;
      const StepOutcome outcome = engine.train_step(input, load);
      const auto index = static_cast<std::size_t>(step - 1);
      gather(gradients[index], &LocalParameter::grad);
      if (run.between_steps) run.between_steps(engine, step);
      const std::lock_guard lock(mutex);
      if (result.losses[index] != 0 &&
          (result.losses[index] != outcome.loss || result.norms[index] != outcome.grad_norm))
        result.faults.emplace_back("ranks were told different losses or norms");
      result.losses[index] = outcome.loss;
      result.norms[index] = outcome.grad_norm;
    }
    gather(parameters, &LocalParameter::value);
  });
  result.initial = initial.finish(result.faults);
  for (Gathered& step : gradients) result.gradients.push_back(step.finish(result.faults));
  result.parameters = parameters.finish(result.faults);
  return result;
}

RunConfig case_t() {
  RunConfig config;
  config.run.name = "t";
  config.run.steps = 10;
  config.run.precision = Precision::fp64;
  config.model.layers = 4;
  config.model.hidden = 32;
  config.model.heads = 4;
  config.model.kv_heads = 2;
  config.model.ffn_hidden = 64;
  config.model.seq_length = 16;
  config.model.vocab_size = 61;
  config.parallel.dp = 1;
  config.batch.global = 12;
  config.optimizer.type = OptimizerType::sgd;
  config.optimizer.weight_decay = 0;
  config.optimizer.clip_norm = 0;
  return config;
}

std::vector<std::string> schedules_for(int virtual_stages) {
  if (virtual_stages > 1)
    return schedule_names(
        [](const ScheduleRules& rules) { return rules.is_built && rules.takes_virtual_stages; });
  return schedule_names(
      [](const ScheduleRules& rules) { return rules.is_built && !rules.takes_virtual_stages; });
}

}  // namespace hpt::testing
