#include "models/gpt/gpt.h"

#include "models/gpt/layers.h"

namespace hpt::gpt {

std::unique_ptr<Layer> make_unit(const ModelSpec& spec, int unit, const DeviceMesh& mesh,
                                 const ParameterStore& store) {
  if (unit == 0) return std::make_unique<EmbeddingLayer>(spec, mesh, store);
  if (unit == spec.num_units() - 1) return std::make_unique<HeadLayer>(spec, mesh, store);
  return std::make_unique<BlockLayer>(spec, unit - 1, mesh, store);
}

}  // namespace hpt::gpt
