#include "pipeline/pipeline_executor.h"

namespace hpt {

PipelineExecutor::PipelineExecutor(const Backend& backend, const Stream& stream, const DeviceMesh& mesh,
                                   PipelineStage& stage, GradientReducer& reducer, Arena& workspace,
                                   EventLog& events)
    : backend_(backend),
      stream_(stream),
      mesh_(mesh),
      stage_(stage),
      reducer_(reducer),
      workspace_(workspace),
      events_(events),
      status_(mesh.world().status()) {}

void PipelineExecutor::run(const ActionList& list, const PipelineRun& run) {
  const bool keeps = run.mode == Mode::train;
  for (const PipelineAction& action : list) {
    const double begin = events_.on() ? seconds_now() : 0;
    status_.act(words_of(action.kind), is_reduction(action.kind) ? -1 : action.micro_batch);
    stage_.before(action);
    perform(action, run);
    stage_.after(action, keeps);
    if (events_.on())
      events_.add({.name = name_of(action.kind),
                   .begin_s = begin,
                   .end_s = seconds_now(),
                   .micro_batch = action.micro_batch,
                   .chunk = action.chunk,
                   .detail = is_compute(action.kind) ? action.unit_begin : action.bucket});
  }
  status_.act("", -1);
}

void PipelineExecutor::perform(const PipelineAction& action, const PipelineRun& run) {
  switch (action.kind) {
    case ActionKind::forward:
      return forward(action, run);
    case ActionKind::backward_input:
      return backward_input(action, run);
    case ActionKind::backward_weight:
      return backward_weight(action, run);
    case ActionKind::recompute:
      fail(ErrorKind::runtime, "internal error: recompute in a list of this version");
    case ActionKind::reduce_tied_start:
      return reducer_.start_tied(stream_);
    case ActionKind::reduce_tied_wait:
      return reducer_.wait_tied(stream_);
    case ActionKind::reduce_bucket_start:
      return reducer_.start_bucket(action.bucket, stream_);
    case ActionKind::reduce_bucket_wait:
      return reducer_.wait_bucket(action.bucket, stream_);
    default:
      return communicate(action, run);
  }
}

LayerContext PipelineExecutor::context(const StageChunk& chunk, int slot, const PipelineRun& run) const {
  const MicroBatch& kept = chunk.micro_batches[static_cast<std::size_t>(slot)];
  const Shape shape = {run.shape.seq_length, run.shape.num_sequences};
  LayerContext context{backend_, stream_, workspace_};
  context.results = run.results;
  if (kept.has_tokens()) context.micro_batch.tokens = fit(kept.tokens, shape);
  if (kept.has_labels()) context.micro_batch.labels = fit(kept.labels, shape);
  context.micro_batch.ordinals = fit(kept.ordinals, {run.shape.num_sequences});
  context.mode = run.mode;
  context.loss_scale = run.loss_scale;
  context.sample = run.sample;
  return context;
}

Tensor PipelineExecutor::fitted(const Tensor& buffer, const PipelineRun& run) const {
  return fit(buffer, {run.shape.seq_length, run.shape.num_sequences, stage_.shape().hidden});
}

// Unit 0's input is what the previous stage sent; the embedding has none.
Tensor PipelineExecutor::unit_input(const StageChunk& chunk, int micro_batch, int unit) const {
  if (unit > 0)
    return chunk
        .hidden[static_cast<std::size_t>(chunk.slots.find(micro_batch))][static_cast<std::size_t>(unit)];
  return chunk.has_embedding ? Tensor{} : chunk.inputs.tensor(micro_batch);
}

void PipelineExecutor::load(const MicroBatch& into, const PipelineAction& action, const PipelineRun& run) {
  Event event{.name = "load",
              .begin_s = seconds_now(),
              .micro_batch = action.micro_batch,
              .chunk = action.chunk,
              .row = EventRow::io};
  (*run.load)(into, run.first_ordinal + action.micro_batch * run.shape.num_sequences);
  event.end_s = seconds_now();
  events_.add(event);
}

void PipelineExecutor::forward(const PipelineAction& action, const PipelineRun& run) {
  StageChunk& chunk = stage_.chunk(action.chunk);
  const int slot = chunk.slots.find(action.micro_batch);
  const LayerContext layer_context = context(chunk, slot, run);
  load(layer_context.micro_batch, action, run);
  for (int unit = 0; unit < chunk.units.size(); ++unit) {
    Tensor x = unit_input(chunk, action.micro_batch, unit);
    Tensor y;
    if (unit + 1 < chunk.units.size())
      y = unit_input(chunk, action.micro_batch, unit + 1);
    else if (chunk.next_is_local)
      y = stage_.chunk(action.chunk + 1).inputs.tensor(action.micro_batch);
    else if (!chunk.has_head)
      y = chunk.outputs.tensor(action.micro_batch);
    if (x.shape.num_dims() > 0) x = fitted(x, run);
    if (y.shape.num_dims() > 0) y = fitted(y, run);
    chunk.layers[static_cast<std::size_t>(unit)]->forward(layer_context, slot, x, y);
  }
}

void PipelineExecutor::backward_input(const PipelineAction& action, const PipelineRun& run) {
  HPT_REQUIRE(action.unit_end == action.unit_begin + 1);
  StageChunk& chunk = stage_.chunk(action.chunk);
  const int unit = action.unit_begin;
  const int slot = chunk.slots.find(action.micro_batch);
  Tensor d_y;
  if (unit + 1 < chunk.units.size())
    d_y = stage_.gradient_between(unit + 1);
  else if (!chunk.has_head)
    d_y = chunk.output_grads.tensor(action.micro_batch);
  Tensor d_x;
  if (unit > 0)
    d_x = stage_.gradient_between(unit);
  else if (chunk.previous_is_local)
    d_x = stage_.chunk(action.chunk - 1).output_grads.tensor(action.micro_batch);
  else if (!chunk.has_embedding)
    d_x = chunk.input_grads.tensor(action.micro_batch);
  Tensor x = unit_input(chunk, action.micro_batch, unit);
  for (Tensor* tensor : {&x, &d_y, &d_x})
    if (tensor->shape.num_dims() > 0) *tensor = fitted(*tensor, run);
  backward_mark_ = workspace_.mark();
  chunk.layers[static_cast<std::size_t>(unit)]->backward_input(context(chunk, slot, run), slot, x, d_y, d_x);
}

void PipelineExecutor::backward_weight(const PipelineAction& action, const PipelineRun& run) {
  HPT_REQUIRE(action.unit_end == action.unit_begin + 1);
  StageChunk& chunk = stage_.chunk(action.chunk);
  const int slot = chunk.slots.find(action.micro_batch);
  Tensor x = unit_input(chunk, action.micro_batch, action.unit_begin);
  if (x.shape.num_dims() > 0) x = fitted(x, run);
  chunk.layers[static_cast<std::size_t>(action.unit_begin)]->backward_weight(context(chunk, slot, run), slot,
                                                                             x);
  workspace_.release(backward_mark_);
}

void PipelineExecutor::communicate(const PipelineAction& action, const PipelineRun& run) {
  StageChunk& chunk = stage_.chunk(action.chunk);
  ProcessGroup& pp = mesh_.pp();
  const int next = (pp.rank() + 1) % pp.size();
  const int previous = (pp.rank() + pp.size() - 1) % pp.size();
  const int id = action.micro_batch;
  auto send = [&](BufferPool& pool, int to) {
    pool.work(id) = pp.send(fitted(pool.tensor(id), run), to, stream_);
  };
  auto recv = [&](BufferPool& pool, int from) {
    pool.work(id) = pp.recv(fitted(pool.tensor(id), run), from, stream_);
  };
  switch (action.kind) {
    case ActionKind::recv_activation_start:
      return recv(chunk.inputs, previous);
    case ActionKind::recv_activation_wait:
      return chunk.inputs.work(id).wait(stream_);
    case ActionKind::send_activation_start:
      return send(chunk.outputs, next);
    case ActionKind::send_activation_wait:
      return chunk.outputs.work(id).wait(stream_);
    case ActionKind::recv_gradient_start:
      return recv(chunk.output_grads, next);
    case ActionKind::recv_gradient_wait:
      return chunk.output_grads.work(id).wait(stream_);
    case ActionKind::send_gradient_start:
      return send(chunk.input_grads, previous);
    case ActionKind::send_gradient_wait:
      return chunk.input_grads.work(id).wait(stream_);
    default:
      fail(ErrorKind::runtime, "internal error: action {} is no communication", name_of(action.kind));
  }
}

}  // namespace hpt
