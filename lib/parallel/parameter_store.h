// ParameterStore: the parameters of one rank and their gradients, laid out by the rows. Values lie in one
// arena; gradients are one contiguous buffer in buckets, in the order in which backward fills them: from the
// last chunk's last unit down. A tied table has a bucket of its own, the last one, and where embedding and
// head share a rank a second gradient buffer for the head, added before the reduction.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "parallel/parameter_row.h"
#include "parallel/stage_layout.h"
#include "tensor/arena.h"

namespace hpt {

// What a layer works with: one local buffer that holds one row, or several one after the other along dim 0.
struct ParameterBuffer {
  Tensor value;
  Tensor grad;
};

// One row's part on this rank.
struct LocalParameter {
  const ParameterRow* row = nullptr;
  int row_index = 0;  // in the model's table
  int part = 0;       // which part of the tp split
  Box box;            // its real elements in the global tensor
  Tensor value;       // padded local shape
  Tensor grad;
};

struct StoreShape {
  int tp_rank = 0;
  int tp = 1;
  DType dtype = DType::f32;
  std::size_t bucket_bytes = std::size_t{8} << 20;  // a bucket closes at the unit that brings it to this size
  std::vector<UnitRange> chunks;                    // global units of each chunk of this rank
  int num_units = 0;                                // of the whole model
};

class ParameterStore {
 public:
  // `rows` outlives the store.
  ParameterStore(const std::vector<ParameterRow>& rows, StoreShape shape, Arena& values, Arena& gradients);

  const StoreShape& shape() const { return shape_; }
  const std::vector<LocalParameter>& parameters() const { return parameters_; }  // in table order

  ParameterBuffer buffer(std::string_view name) const;
  // The table that the head multiplies by: its own, or the tied one with the head's gradient buffer.
  ParameterBuffer head_table(std::string_view name) const;

  Tensor gradients() const { return gradients_; }  // everything, padding included
  int num_buckets() const { return static_cast<int>(buckets_.size()); }
  Tensor bucket(int index) const { return buckets_[static_cast<std::size_t>(index)]; }
  int tied_bucket() const { return tied_bucket_; }  // -1: no tied table here
  int bucket_of_unit(int global_unit) const;
  // The head's own gradient of the tied table where embedding and head share this rank, else a Tensor{} with
  // no dims.
  Tensor second_tied_gradient() const { return second_tied_gradient_; }
  // Local gradients that are partial over tp replicas.
  std::vector<Tensor> replica_gradients() const;

 private:
  struct Block;   // one local buffer
  struct Layout;  // where all of them and the buckets lie, while that is worked out
  bool holds(int unit) const;
  const ParameterRow* tied_table() const;  // nullptr: none here
  void lay_out_unit(int unit, Layout& layout) const;
  void lay_out_buckets(Layout& layout);
  void lay_out_tied_bucket(Layout& layout);
  void cut_buckets(const Layout& layout);
  void place(const Layout& layout, Arena& values);

  const std::vector<ParameterRow>& rows_;
  StoreShape shape_;
  std::vector<LocalParameter> parameters_;
  std::unordered_map<std::string, ParameterBuffer> buffers_;
  std::vector<int> bucket_of_unit_;
  std::vector<Tensor> buckets_;
  Tensor gradients_;
  Tensor second_tied_gradient_;
  int tied_bucket_ = -1;
};

}  // namespace hpt
