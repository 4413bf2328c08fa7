// RunPlan: a run as plain values, the same on every rank, made from the config before any memory is taken:
// the mesh, the model's rows, which rank holds which units, and a checked action list for each pipeline rank.
#pragma once

#include <vector>

#include "config/run_config.h"
#include "models/model_spec.h"
#include "nn/layer.h"
#include "parallel/mesh_layout.h"
#include "parallel/parameter_store.h"
#include "schedule/pipeline_schedule.h"

namespace hpt {

struct RunPlan {
  RunConfig config;
  ModelSpec spec;
  MeshLayout mesh;
  DType dtype = DType::f32;
  std::vector<UnitRange> stages;  // of all pp * virtual_stages stages
  PipelineSchedule train;         // one optimizer step
  PipelineSchedule evaluate;      // one global batch, forward only
  PipelineSchedule sample;        // one micro-batch, forward only

  MicroBatchShape micro_batch() const { return {config.model.seq_length, config.batch.micro}; }
};

struct PlanOptions {
  std::size_t bucket_bytes = std::size_t{8} << 20;  // of gradients reduced together
};

RunPlan make_run_plan(const RunConfig& config, const PlanOptions& options = {});

// Error of kind usage for what this version can't compute in.
DType dtype_of(Precision precision);

// Compute threads of a rank where `num_ranks` share `num_cores`.
int threads_of(const RunConfig& config, int num_cores, int num_ranks);

// What the ParameterStore of a rank at these mesh coordinates is made from.
StoreShape store_shape(const RunPlan& plan, int pp_rank, int tp_rank, const PlanOptions& options = {});

}  // namespace hpt
