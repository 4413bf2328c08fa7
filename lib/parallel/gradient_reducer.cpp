#include "parallel/gradient_reducer.h"

namespace hpt {

GradientReducer::GradientReducer(const Backend& backend, const DeviceMesh& mesh, const ParameterStore& store)
    : backend_(backend),
      mesh_(mesh),
      store_(store),
      bucket_works_(static_cast<std::size_t>(store.num_buckets())),
      replica_gradients_(store.replica_gradients()) {}

void GradientReducer::start_tied(const Stream& stream) {
  const Tensor table = store_.bucket(store_.tied_bucket());
  const Tensor second = store_.second_tied_gradient();
  if (second.shape.num_dims() > 0)
    backend_.elementwise.add(stream, table.rows(0, second.num_elements()),
                             second.view({second.num_elements()}));
  else
    tied_work_ = mesh_.tied().all_reduce(table, ReduceOp::sum, stream);
}

void GradientReducer::wait_tied(const Stream& stream) {
  tied_work_.wait(stream);
}

void GradientReducer::start_bucket(int bucket, const Stream& stream) {
  bucket_works_[static_cast<std::size_t>(bucket)] =
      mesh_.data().all_reduce(store_.bucket(bucket), ReduceOp::sum, stream);
}

void GradientReducer::wait_bucket(int bucket, const Stream& stream) {
  bucket_works_[static_cast<std::size_t>(bucket)].wait(stream);
}

void GradientReducer::reduce_replicas(const Stream& stream) {
  for (const Tensor& gradient : replica_gradients_)
    mesh_.kv_replicas().all_reduce(gradient, ReduceOp::sum, stream).wait(stream);
}

}  // namespace hpt
