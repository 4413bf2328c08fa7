// GlobalNorm: the norm of all gradients, each element counted once whatever the layout. Every (parameter, tp
// part) has one entry, filled in fp64 by the one rank that answers for it (data coordinate 0, first of its tp
// replicas, first of a tied pair's stages); a sum over the world completes the entries, and they are added in
// table order, the same on all ranks. An entry that is not finite names the parameter.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "parallel/device_mesh.h"
#include "parallel/parameter_store.h"

namespace hpt {

class GlobalNorm {
 public:
  GlobalNorm(const Backend& backend, const DeviceMesh& mesh, const ParameterStore& store,
             const std::vector<ParameterRow>& rows);

  std::int64_t num_entries() const { return num_entries_; }
  // entries f64 [num_entries], zeros before: sums of squares of what this rank answers for.
  void fill_entries(const Stream& stream, const Tensor& entries) const;

  // From the completed entries.
  double norm(std::span<const double> entries) const;
  std::optional<std::string> first_not_finite(std::span<const double> entries) const;

 private:
  struct Owned {
    Tensor grad;
    std::int64_t entry = 0;
  };

  const Backend& backend_;
  const std::vector<ParameterRow>& rows_;
  std::vector<std::int64_t> first_entry_;  // of each row
  std::int64_t num_entries_ = 0;
  std::vector<Owned> owned_;
};

}  // namespace hpt
