#include "parallel/parameter_store.h"

#include <algorithm>
#include <utility>

namespace hpt {
namespace {

// Buffers start on 64-byte boundaries in the gradient buffer too.
std::int64_t padded(std::int64_t num_elements, DType dtype) {
  const auto granule = static_cast<std::int64_t>(Arena::kAlignment / size_of(dtype));
  return (num_elements + granule - 1) / granule * granule;
}

const std::string& buffer_name(const ParameterRow& row) {
  return row.buffer.empty() ? row.name : row.buffer;
}

Shape stacked_shape(const std::vector<const ParameterRow*>& rows) {
  Shape shape = local_shape(*rows.front());
  for (std::size_t i = 1; i < rows.size(); ++i) shape[0] += local_shape(*rows[i])[0];
  return shape;
}

}  // namespace

struct ParameterStore::Block {
  std::string name;
  std::vector<const ParameterRow*> rows;
  std::int64_t grad_begin = 0;
};

// Places are in elements of the gradient buffer.
struct ParameterStore::Layout {
  std::vector<Block> blocks;
  std::vector<std::int64_t> bucket_begins;
  std::int64_t end = 0;

  void append(Block block, DType dtype) {
    block.grad_begin = end;
    end += padded(stacked_shape(block.rows).num_elements(), dtype);
    blocks.push_back(std::move(block));
  }
};

ParameterStore::ParameterStore(const std::vector<ParameterRow>& rows, StoreShape shape, Arena& values,
                               Arena& gradients)
    : rows_(rows), shape_(std::move(shape)), bucket_of_unit_(static_cast<std::size_t>(shape_.num_units), -1) {
  Layout layout;
  lay_out_buckets(layout);
  lay_out_tied_bucket(layout);
  gradients_ = gradients.allocate(shape_.dtype, {layout.end});
  cut_buckets(layout);
  place(layout, values);
  const ParameterRow* tied = tied_table();
  if (tied && std::all_of(tied->units.begin(), tied->units.end(), [&](int unit) { return holds(unit); }))
    second_tied_gradient_ = gradients.allocate(shape_.dtype, local_shape(*tied));
}

bool ParameterStore::holds(int unit) const {
  return std::any_of(shape_.chunks.begin(), shape_.chunks.end(),
                     [&](const UnitRange& chunk) { return chunk.begin <= unit && unit < chunk.end; });
}

const ParameterRow* ParameterStore::tied_table() const {
  for (const ParameterRow& row : rows_)
    if (row.tied() && std::any_of(row.units.begin(), row.units.end(), [&](int unit) { return holds(unit); }))
      return &row;
  return nullptr;
}

void ParameterStore::lay_out_unit(int unit, Layout& layout) const {
  std::vector<Block> blocks;
  for (const ParameterRow& row : rows_) {
    if (row.tied() || row.units.front() != unit) continue;
    if (!blocks.empty() && blocks.back().name == buffer_name(row))
      blocks.back().rows.push_back(&row);
    else
      blocks.push_back({buffer_name(row), {&row}});
  }
  for (Block& block : blocks) layout.append(std::move(block), shape_.dtype);
}

void ParameterStore::lay_out_buckets(Layout& layout) {
  bool is_open = false;
  for (int unit = shape_.num_units - 1; unit >= 0; --unit) {
    if (!holds(unit)) continue;
    if (!is_open) layout.bucket_begins.push_back(layout.end);
    lay_out_unit(unit, layout);
    bucket_of_unit_[static_cast<std::size_t>(unit)] = static_cast<int>(layout.bucket_begins.size()) - 1;
    const std::int64_t length = layout.end - layout.bucket_begins.back();
    is_open = static_cast<std::size_t>(length) * size_of(shape_.dtype) < shape_.bucket_bytes;
  }
}

void ParameterStore::lay_out_tied_bucket(Layout& layout) {
  const ParameterRow* tied = tied_table();
  if (!tied) return;
  tied_bucket_ = static_cast<int>(layout.bucket_begins.size());
  layout.bucket_begins.push_back(layout.end);
  layout.append({buffer_name(*tied), {tied}}, shape_.dtype);
}

void ParameterStore::cut_buckets(const Layout& layout) {
  std::vector<std::int64_t> borders = layout.bucket_begins;
  borders.push_back(layout.end);
  for (std::size_t i = 0; i + 1 < borders.size(); ++i)
    buckets_.push_back(gradients_.rows(borders[i], borders[i + 1]));
}

void ParameterStore::place(const Layout& layout, Arena& values) {
  for (const Block& block : layout.blocks) {
    const Shape shape = stacked_shape(block.rows);
    const Tensor value = values.allocate(shape_.dtype, shape);
    const Tensor grad =
        gradients_.rows(block.grad_begin, block.grad_begin + shape.num_elements()).view(shape);
    buffers_[block.name] = {value, grad};
    std::int64_t first = 0;
    for (const ParameterRow* row : block.rows) {
      const std::int64_t last = first + local_shape(*row)[0];
      parameters_.push_back(
          {row, static_cast<int>(row - rows_.data()), part_of(*row, shape_.tp_rank, shape_.tp),
           box_of(*row, shape_.tp_rank, shape_.tp), value.rows(first, last), grad.rows(first, last)});
      first = last;
    }
  }
  std::sort(parameters_.begin(), parameters_.end(),
            [](const LocalParameter& a, const LocalParameter& b) { return a.row_index < b.row_index; });
}

ParameterBuffer ParameterStore::buffer(std::string_view name) const {
  const auto found = buffers_.find(std::string(name));
  if (found == buffers_.end())
    fail(ErrorKind::runtime, "internal error: this rank holds no parameter buffer '{}'", name);
  return found->second;
}

ParameterBuffer ParameterStore::head_table(std::string_view name) const {
  ParameterBuffer table = buffer(name);
  if (second_tied_gradient_.shape.num_dims() > 0) table.grad = second_tied_gradient_;
  return table;
}

int ParameterStore::bucket_of_unit(int global_unit) const {
  return bucket_of_unit_[static_cast<std::size_t>(global_unit)];
}

std::vector<Tensor> ParameterStore::replica_gradients() const {
  std::vector<Tensor> partial;
  for (const LocalParameter& parameter : parameters_)
    if (sums_replicas(*parameter.row, shape_.tp)) partial.push_back(parameter.grad);
  return partial;
}

}  // namespace hpt
