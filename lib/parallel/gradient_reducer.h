// GradientReducer: sums finished gradients over the ranks that share a parameter, a bucket at a time and in
// the background, so that communication hides behind the rest of backward.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "parallel/device_mesh.h"
#include "parallel/parameter_store.h"

namespace hpt {

class GradientReducer {
 public:
  // All references outlive the reducer.
  GradientReducer(const Backend& backend, const DeviceMesh& mesh, const ParameterStore& store);

  // The tied table: the head's gradient is added to the embedding's, on one rank or over the tied group.
  void start_tied(const Stream& stream);
  void wait_tied(const Stream& stream);
  // One bucket over the data-parallel group.
  void start_bucket(int bucket, const Stream& stream);
  void wait_bucket(int bucket, const Stream& stream);
  // After all buckets: rows whose tp replicas hold partial gradients.
  void reduce_replicas(const Stream& stream);

 private:
  const Backend& backend_;
  const DeviceMesh& mesh_;
  const ParameterStore& store_;
  std::vector<Work> bucket_works_;
  Work tied_work_;
  std::vector<Tensor> replica_gradients_;
};

}  // namespace hpt
