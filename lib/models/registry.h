// The families of models that this build knows, one entry each: how rows are made and how units are built.
#pragma once

#include <memory>
#include <vector>

#include "models/model_spec.h"
#include "nn/layer.h"
#include "parallel/device_mesh.h"
#include "parallel/parameter_store.h"

namespace hpt {

struct ModelFamily {
  std::vector<ParameterRow> (*make_rows)(const ModelSpec& spec, double init_std);
  // The layer of one global unit: 0 = embedding, 1..L = blocks, L + 1 = head. References outlive the layer.
  // Null for a family that has rows only: it can be counted, not run (config/not_yet_supported.cpp).
  std::unique_ptr<Layer> (*make_unit)(const ModelSpec& spec, int unit, const DeviceMesh& mesh,
                                      const ParameterStore& store);
};

const ModelFamily& family_of(Family family);

}  // namespace hpt
