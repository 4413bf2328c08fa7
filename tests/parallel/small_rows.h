// A small table of every kind of row, for tests of what is built on rows: a vocabulary cut with padding (7
// rows), whole rows, a fused buffer with replicated parts, a cut along dim 1, and a table that may be tied.
#pragma once

#include <string>
#include <vector>

#include "parallel/parameter_store.h"

namespace hpt::testing {

struct SmallTable {
  int tp = 1;        // divides 12
  int kv_parts = 1;  // divides 4 and tp
  bool tied = true;
};

constexpr int kSmallUnits = 5;  // embedding, three blocks, head

inline ParameterRow small_row(const std::string& name, const Shape& shape, int unit) {
  ParameterRow row;
  row.name = name;
  row.shape = shape;
  row.units = {unit};
  row.weight_decay = shape.num_dims() > 1;
  return row;
}

inline ParameterRow split_row(ParameterRow row, int dim, int num_parts, const std::string& buffer = "") {
  row.split = TpSplit{dim, num_parts, (row.shape[dim] + num_parts - 1) / num_parts};
  row.buffer = buffer;
  return row;
}

inline std::vector<ParameterRow> small_rows(const SmallTable& table) {
  const int head = kSmallUnits - 1;
  std::vector<ParameterRow> rows;
  rows.push_back(split_row(small_row("table", {7, 3}, 0), 0, table.tp));
  if (table.tied) rows.back().units.push_back(head);
  rows.push_back(small_row("positions", {5, 3}, 0));
  for (int block = 1; block < head; ++block) {
    const std::string name = format("b{}.", block);
    rows.push_back(small_row(name + "norm", {3}, block));
    rows.push_back(split_row(small_row(name + "q", {12, 3}, block), 0, table.tp, name + "qkv"));
    rows.push_back(split_row(small_row(name + "k", {4, 3}, block), 0, table.kv_parts, name + "qkv"));
    rows.push_back(split_row(small_row(name + "v", {4, 3}, block), 0, table.kv_parts, name + "qkv"));
    rows.push_back(split_row(small_row(name + "out", {3, 12}, block), 1, table.tp));
  }
  rows.push_back(small_row("final", {3}, head));
  if (!table.tied) rows.push_back(split_row(small_row("head", {7, 3}, head), 0, table.tp));
  return rows;
}

// The chunks of each pipeline rank: one stage each, or two for virtual stages of pp 2.
inline std::vector<UnitRange> small_chunks(int pp, int pp_rank, bool virtual_stages = false) {
  const auto at = static_cast<std::size_t>(pp_rank);
  if (pp == 1)
    return virtual_stages ? std::vector<UnitRange>{{0, 2}, {2, 5}} : std::vector<UnitRange>{{0, 5}};
  if (pp == 3) return {std::vector<UnitRange>{{0, 2}, {2, 3}, {3, 5}}[at]};
  if (!virtual_stages) return {std::vector<UnitRange>{{0, 3}, {3, 5}}[at]};
  return pp_rank == 0 ? std::vector<UnitRange>{{0, 1}, {2, 3}} : std::vector<UnitRange>{{1, 2}, {3, 5}};
}

// A store with memory of its own, exactly as much as measuring asks for.
class OwnedStore {
 public:
  OwnedStore(const std::vector<ParameterRow>& rows, const StoreShape& shape)
      : OwnedStore(rows, shape, measure(rows, shape)) {}

  const ParameterStore& operator*() const { return store_; }
  const ParameterStore* operator->() const { return &store_; }
  const Arena& values() const { return values_; }
  const Arena& gradients() const { return gradients_; }

 private:
  struct Sizes {
    std::size_t values = 0, gradients = 0;
  };
  static Sizes measure(const std::vector<ParameterRow>& rows, const StoreShape& shape) {
    Arena values("values"), gradients("gradients");
    const ParameterStore store(rows, shape, values, gradients);
    return {values.used(), gradients.used()};
  }
  OwnedStore(const std::vector<ParameterRow>& rows, const StoreShape& shape, const Sizes& sizes)
      : values_("values", sizes.values, host_memory()),
        gradients_("gradients", sizes.gradients, host_memory()),
        store_(rows, shape, values_, gradients_) {}

  Arena values_;
  Arena gradients_;
  ParameterStore store_;
};

inline StoreShape small_shape(int tp, int tp_rank, std::vector<UnitRange> chunks) {
  StoreShape shape;
  shape.tp = tp;
  shape.tp_rank = tp_rank;
  shape.dtype = DType::f64;
  shape.chunks = std::move(chunks);
  shape.num_units = kSmallUnits;
  return shape;
}

}  // namespace hpt::testing
