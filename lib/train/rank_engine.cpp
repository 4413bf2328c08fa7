#include "train/rank_engine.h"

#include <array>
#include <cmath>
#include <utility>

#include "core/hash.h"
#include "train/checkpoint_plan.h"

namespace hpt {
namespace {

constexpr std::int64_t kStopEntry = 1;
constexpr std::int64_t kSaveEntry = 2;
constexpr std::int64_t kFirstNormEntry = 3;

}  // namespace

RankEngine::RankEngine(const RunPlan& plan, ProcessGroup& world, const Backend& backend, const Stream& stream,
                       EngineArenas arenas, const PlanOptions& options)
    : plan_(plan),
      backend_(backend),
      stream_(stream),
      arenas_(std::move(arenas)),
      mesh_(plan.mesh, world, plan.spec.kv_parts()),
      store_(plan.spec.rows, store_shape(plan, mesh_.coordinate("pp"), mesh_.coordinate("tp"), options),
             arenas_.parameters, arenas_.gradients),
      reducer_(backend, mesh_, store_),
      stage_(plan.spec, mesh_, store_,
             std::array{&list_of(plan.train), &list_of(plan.evaluate), &list_of(plan.sample)},
             {plan.micro_batch(), plan.spec.hidden, plan.dtype}, arenas_.activations),
      executor_(backend, stream_, mesh_, stage_, reducer_, arenas_.workspace, events_),
      optimizer_(plan.config.optimizer, backend, store_, arenas_.optimizer),
      norm_(backend, mesh_, store_, plan.spec.rows),
      staging_(arenas_.staging.allocate(DType::u8, {staging_bytes(plan, mesh_.rank())})),
      sums_(arenas_.workspace.allocate(DType::f64, {kFirstNormEntry + norm_.num_entries()})),
      other_loss_(arenas_.workspace.allocate(DType::f64, {1})),
      best_token_(arenas_.workspace.allocate(DType::f64, {2})),
      sums_host_(static_cast<std::size_t>(sums_.num_elements())) {
  stream_.events = &events_;
  init_parameters();
}

RankEngine::~RankEngine() = default;

const ActionList& RankEngine::list_of(const PipelineSchedule& schedule) const {
  return schedule.ranks[static_cast<std::size_t>(mesh_.coordinate("pp"))];
}

void RankEngine::init_parameters() {
  RankStatus& status = mesh_.world().status();
  status.enter(RunPhase::memory, 0);
  for (const LocalParameter& parameter : store_.parameters()) {
    status.beat();
    const ParameterRow& row = *parameter.row;
    if (row.init == InitKind::ones) backend_.elementwise.fill(stream_, parameter.value, 1);
    if (row.init != InitKind::normal) continue;
    NormalInit init;
    init.seed = plan_.spec.seed;
    init.tensor_id = hash64(row.name);
    init.global_shape = row.shape;
    init.box = parameter.box;
    init.std = row.init_std;
    backend_.init.normal(stream_, parameter.value, init);
  }
}

PipelineRun RankEngine::run_of(Mode mode, std::int64_t first_ordinal, const LoadMicroBatch& load) {
  const BatchSection& batch = plan_.config.batch;
  PipelineRun run;
  run.mode = mode;
  // A data-parallel rank takes neighbouring samples: its micro-batches follow each other.
  run.first_ordinal = first_ordinal + mesh_.coordinate("dp") * plan_.config.num_micro_batches() * batch.micro;
  run.load = &load;
  run.shape = plan_.micro_batch();
  run.results.loss = mesh_.tp().rank() == 0 && mesh_.coordinate("cp") == 0
                         ? sums_.rows(kLossEntry, kLossEntry + 1)
                         : other_loss_;
  run.results.best_token = best_token_;
  return run;
}

void RankEngine::cast_votes(const StepVotes& votes) {
  const auto cast = [&](std::int64_t entry, bool is_for) {
    backend_.elementwise.fill(stream_, sums_.rows(entry, entry + 1), is_for ? 1 : 0);
  };
  cast(kStopEntry, votes.stop);
  cast(kSaveEntry, votes.save_part_done);
}

void RankEngine::complete_sums() {
  mesh_.world().all_reduce(sums_, ReduceOp::sum, stream_).wait(stream_);
  backend_.transfer.to_host(stream_, sums_host_.data(), sums_);
}

StepOutcome RankEngine::train_step(const StepInput& input, const LoadMicroBatch& load) {
  if (input.num_predicted == 0)
    throw RefusedStep(format("step {}: no token of the batch is to be predicted", input.step));
  const ElementwiseOps& elementwise = backend_.elementwise;
  elementwise.fill(stream_, store_.gradients(), 0);
  if (store_.second_tied_gradient().shape.num_dims() > 0)
    elementwise.fill(stream_, store_.second_tied_gradient(), 0);
  elementwise.fill(stream_, sums_, 0);

  PipelineRun run = run_of(Mode::train, input.first_ordinal, load);
  run.loss_scale = 1 / static_cast<double>(input.num_predicted);
  executor_.run(list_of(plan_.train), run);
  RankStatus& status = mesh_.world().status();
  status.act("gradient reduction", -1);
  reducer_.reduce_replicas(stream_);
  status.act("gradient norm", -1);
  norm_.fill_entries(stream_, sums_.rows(kFirstNormEntry, sums_.shape[0]));
  if (input.votes) cast_votes(input.votes());
  complete_sums();

  const std::span<const double> entries = std::span<const double>(sums_host_).subspan(kFirstNormEntry);
  StepOutcome outcome;
  outcome.loss = sums_host_[kLossEntry] / static_cast<double>(input.num_predicted);
  outcome.stop = sums_host_[kStopEntry] > 0;
  outcome.save_part_done = sums_host_[kSaveEntry] == mesh_.world().size();
  if (!std::isfinite(outcome.loss)) refuse(input, load, "the loss is not finite");
  if (const auto name = norm_.first_not_finite(entries))
    refuse(input, load, format("the gradient of {} is not finite", *name));
  outcome.grad_norm = norm_.norm(entries);
  if (!std::isfinite(outcome.grad_norm)) refuse(input, load, "the norm of all gradients is not finite");
  status.act("optimizer", -1);
  optimizer_.apply(stream_, input.step, input.lr,
                   clip_scale(outcome.grad_norm, plan_.config.optimizer.clip_norm));
  status.act("", -1);
  return outcome;
}

EvaluatedBatch RankEngine::evaluate_batch(std::int64_t first_ordinal, const LoadMicroBatch& load,
                                          const std::function<StepVotes()>& votes) {
  backend_.elementwise.fill(stream_, sums_, 0);
  executor_.run(list_of(plan_.evaluate), run_of(Mode::eval, first_ordinal, load));
  if (votes) cast_votes(votes());
  complete_sums();
  return {sums_host_[kLossEntry], sums_host_[kStopEntry] > 0, sums_host_[kSaveEntry] == mesh_.world().size()};
}

std::int64_t RankEngine::sample(const MicroBatchShape& shape, const SampleDraw& draw,
                                const LoadMicroBatch& load) {
  PipelineRun run = run_of(Mode::sample, 0, load);
  run.shape = shape;
  run.sample = draw;
  backend_.elementwise.fill(stream_, best_token_, -1);
  executor_.run(list_of(plan_.sample), run);
  // Only the last stage drew; every other rank brings -1.
  const Tensor token = best_token_.rows(1, 2);
  mesh_.world().all_reduce(token, ReduceOp::max, stream_).wait(stream_);
  double drawn = 0;
  backend_.transfer.to_host(stream_, &drawn, token);
  return static_cast<std::int64_t>(drawn);
}

}  // namespace hpt
