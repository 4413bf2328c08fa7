#include "backend/backend.h"

#include "backend/cpu/ops.h"

namespace hpt {

const Backend& cpu_backend() {
  static const Backend table{.name = "cpu",
                             .memory = host_memory(),
                             .gemm = cpu::gemm_ops(),
                             .norm = cpu::norm_ops(),
                             .activation = cpu::activation_ops(),
                             .dropout = cpu::dropout_ops(),
                             .elementwise = cpu::elementwise_ops(),
                             .embedding = cpu::embedding_ops(),
                             .attention = cpu::attention_ops(),
                             .loss = cpu::loss_ops(),
                             .init = cpu::init_ops(),
                             .optimizer = cpu::optimizer_ops(),
                             .transfer = cpu::transfer_ops()};
  return table;
}

}  // namespace hpt
