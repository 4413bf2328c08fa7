#include "optim/global_norm.h"

#include <algorithm>
#include <cmath>

namespace hpt {
namespace {

int num_parts(const ParameterRow& row) {
  return row.split ? row.split->num_parts : 1;
}

// A tied table lies on two stages of a pipeline; the first one answers.
bool answers_for_tied(const DeviceMesh& mesh) {
  return mesh.tied().rank() == 0;
}

}  // namespace

GlobalNorm::GlobalNorm(const Backend& backend, const DeviceMesh& mesh, const ParameterStore& store,
                       const std::vector<ParameterRow>& rows)
    : backend_(backend), rows_(rows) {
  for (const ParameterRow& row : rows) {
    first_entry_.push_back(num_entries_);
    num_entries_ += num_parts(row);
  }
  if (mesh.data().rank() != 0) return;
  const int tp_rank = mesh.coordinate("tp");
  for (const LocalParameter& parameter : store.parameters()) {
    const ParameterRow& row = *parameter.row;
    if (replicas_of(row, tp_rank, mesh.size("tp")).front() != tp_rank) continue;
    if (row.tied() && !answers_for_tied(mesh)) continue;
    owned_.push_back(
        {parameter.grad, first_entry_[static_cast<std::size_t>(parameter.row_index)] + parameter.part});
  }
}

void GlobalNorm::fill_entries(const Stream& stream, const Tensor& entries) const {
  for (const Owned& owned : owned_)
    backend_.optimizer.square_sum(stream, entries.rows(owned.entry, owned.entry + 1), owned.grad);
}

double GlobalNorm::norm(std::span<const double> entries) const {
  double sum = 0;
  for (double entry : entries) sum += entry;
  return std::sqrt(sum);
}

std::optional<std::string> GlobalNorm::first_not_finite(std::span<const double> entries) const {
  const auto bad =
      std::find_if(entries.begin(), entries.end(), [](double entry) { return !std::isfinite(entry); });
  if (bad == entries.end()) return std::nullopt;
  const auto after = std::upper_bound(first_entry_.begin(), first_entry_.end(), bad - entries.begin());
  return rows_[static_cast<std::size_t>(after - first_entry_.begin() - 1)].name;
}

}  // namespace hpt
