// meta: every op checks its shapes and computes nothing; memory is counted, never taken, and every pointer is
// null.
#include "backend/backend.h"

#include "backend/meta/ops.h"

namespace hpt {

const Backend& meta_backend() {
  static const Backend table{
      .name = "meta",
      .memory = {[](std::size_t) -> void* { return nullptr; }, [](void*, std::size_t) {}},
      .gemm = meta::gemm_ops(),
      .norm = meta::norm_ops(),
      .activation = meta::activation_ops(),
      .dropout = meta::dropout_ops(),
      .elementwise = meta::elementwise_ops(),
      .embedding = meta::embedding_ops(),
      .attention = meta::attention_ops(),
      .loss = meta::loss_ops(),
      .init = meta::init_ops(),
      .optimizer = meta::optimizer_ops(),
      .transfer = meta::transfer_ops()};
  return table;
}

}  // namespace hpt
