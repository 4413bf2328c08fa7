#include "parallel/parameter_store.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>

#include "parallel/small_rows.h"

using namespace hpt;
using namespace hpt::testing;

namespace {

struct StoreCase {
  SmallTable table;
  int tp_rank = 0;
  int pp = 1;
  int pp_rank = 0;
  bool virtual_stages = false;
  DType dtype = DType::f64;
  std::size_t bucket_bytes = 1;

  StoreShape shape() const {
    StoreShape shape = small_shape(table.tp, tp_rank, small_chunks(pp, pp_rank, virtual_stages));
    shape.dtype = dtype;
    shape.bucket_bytes = bucket_bytes;
    return shape;
  }
  bool holds(int unit) const {
    const std::vector<UnitRange> chunks = shape().chunks;
    return std::any_of(chunks.begin(), chunks.end(),
                       [&](const UnitRange& chunk) { return chunk.begin <= unit && unit < chunk.end; });
  }
  bool holds(const ParameterRow& row) const {
    return std::any_of(row.units.begin(), row.units.end(), [&](int unit) { return holds(unit); });
  }
};

using Visit = std::function<void(const StoreCase&, const std::vector<ParameterRow>&)>;

// Every rank of several layouts: tp 1 to 4, replicated parts or not, 1 to 3 stages, virtual ones too.
void for_each_store(const Visit& visit) {
  struct Layout {
    int tp, kv_parts, pp;
    bool virtual_stages;
  };
  for (const Layout& layout : std::vector<Layout>{
           {1, 1, 1, false}, {2, 2, 1, true}, {3, 1, 2, false}, {4, 2, 2, true}, {4, 4, 3, false}})
    for (const bool tied : {true, false})
      for (int tp_rank = 0; tp_rank < layout.tp; ++tp_rank)
        for (int pp_rank = 0; pp_rank < layout.pp; ++pp_rank) {
          CAPTURE(layout.tp, layout.kv_parts, layout.pp, layout.virtual_stages, tied, tp_rank, pp_rank);
          const SmallTable table{layout.tp, layout.kv_parts, tied};
          visit({table, tp_rank, layout.pp, pp_rank, layout.virtual_stages}, small_rows(table));
        }
}

const char* end_of(const Tensor& tensor) {
  return static_cast<const char*>(tensor.data) + tensor.num_bytes();
}

bool lies_in(const Tensor& part, const Tensor& whole) {
  return part.data >= whole.data && end_of(part) <= end_of(whole);
}

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// Bytes of a unit's untied buffers, each on a 64-byte boundary.
std::int64_t unit_bytes(const std::vector<ParameterRow>& rows, int unit, DType dtype) {
  std::map<std::string, std::int64_t> buffers;
  for (const ParameterRow& row : rows)
    if (row.units == std::vector<int>{unit})
      buffers[row.buffer.empty() ? row.name : row.buffer] +=
          local_shape(row).num_elements() * static_cast<std::int64_t>(size_of(dtype));
  std::int64_t bytes = 0;
  for (const auto& [name, buffer] : buffers) bytes += aligned(buffer);
  return bytes;
}

// Bucket of each held unit by its definition: from the last unit down, closing at bucket_bytes.
std::map<int, int> buckets_by_definition(const StoreCase& test, const std::vector<ParameterRow>& rows) {
  std::map<int, int> bucket_of_unit;
  int bucket = 0;
  std::int64_t bytes = 0;
  for (int unit = kSmallUnits - 1; unit >= 0; --unit) {
    if (!test.holds(unit)) continue;
    bucket_of_unit[unit] = bucket;
    bytes += unit_bytes(rows, unit, test.dtype);
    if (bytes < static_cast<std::int64_t>(test.bucket_bytes)) continue;
    ++bucket;
    bytes = 0;
  }
  return bucket_of_unit;
}

void check_buckets_tile_gradients(const ParameterStore& store) {
  REQUIRE(store.num_buckets() > 0);
  CHECK(store.bucket(0).data == store.gradients().data);
  for (int i = 0; i + 1 < store.num_buckets(); ++i)
    CHECK(store.bucket(i + 1).data == static_cast<const void*>(end_of(store.bucket(i))));
  CHECK(end_of(store.bucket(store.num_buckets() - 1)) == end_of(store.gradients()));
}

void check_buckets(const StoreCase& test, const std::vector<ParameterRow>& rows) {
  const OwnedStore store(rows, test.shape());
  check_buckets_tile_gradients(*store);
  const std::map<int, int> expected = buckets_by_definition(test, rows);
  for (int unit = 0; unit < kSmallUnits; ++unit)
    CHECK(store->bucket_of_unit(unit) == (expected.contains(unit) ? expected.at(unit) : -1));
  for (const LocalParameter& parameter : store->parameters()) {
    const ParameterRow& row = *parameter.row;
    const int bucket = row.tied() ? store->tied_bucket() : expected.at(row.units.front());
    CAPTURE(row.name, bucket);
    CHECK(lies_in(parameter.grad, store->bucket(bucket)));
  }
  std::map<int, std::int64_t> bytes;
  for (const auto& [unit, bucket] : expected) bytes[bucket] += unit_bytes(rows, unit, test.dtype);
  for (const auto& [bucket, of_units] : bytes)
    CHECK(static_cast<std::int64_t>(store->bucket(bucket).num_bytes()) == of_units);
}

}  // namespace

TEST_CASE("a store holds the rows of its units alone, in table order, each with its row's part of a rank") {
  for_each_store([](const StoreCase& test, const std::vector<ParameterRow>& rows) {
    const OwnedStore store(rows, test.shape());
    std::vector<std::string> names, expected;
    for (const ParameterRow& row : rows)
      if (test.holds(row)) expected.push_back(row.name);
    for (const LocalParameter& parameter : store->parameters()) {
      const ParameterRow& row = *parameter.row;
      names.push_back(row.name);
      CHECK(&row == &rows[static_cast<std::size_t>(parameter.row_index)]);
      CHECK(parameter.part == part_of(row, test.tp_rank, test.table.tp));
      CHECK(parameter.box == box_of(row, test.tp_rank, test.table.tp));
      CHECK(parameter.value.shape == local_shape(row));
      CHECK(parameter.grad.shape == local_shape(row));
      CHECK(parameter.value.dtype == test.dtype);
    }
    CHECK(names == expected);
  });
}

TEST_CASE("no two parameters or gradients of a store share memory, and all of it starts as zero") {
  for_each_store([](const StoreCase& test, const std::vector<ParameterRow>& rows) {
    const OwnedStore store(rows, test.shape());
    std::vector<Tensor> tensors;
    for (const LocalParameter& parameter : store->parameters())
      tensors.insert(tensors.end(), {parameter.value, parameter.grad});
    if (store->second_tied_gradient().shape.num_dims() > 0) tensors.push_back(store->second_tied_gradient());
    const auto is_zero = [](double x) { return x == 0; };
    const auto gradients = store->gradients().span<double>();
    CHECK(std::all_of(gradients.begin(), gradients.end(), is_zero));
    for (std::size_t i = 0; i < tensors.size(); ++i)
      for (double& x : tensors[i].span<double>()) {
        REQUIRE(x == 0);
        x = static_cast<double>(i + 1);
      }
    for (std::size_t i = 0; i < tensors.size(); ++i)
      for (const double x : tensors[i].span<double>()) REQUIRE(x == static_cast<double>(i + 1));
  });
}

TEST_CASE("buckets are contiguous, hold whole units from the last one down, and close at bucket_bytes") {
  for_each_store([](StoreCase test, const std::vector<ParameterRow>& rows) {
    for (const std::size_t bytes : {1, 300, 700, 1200, 1 << 20}) {
      test.bucket_bytes = bytes;
      for (const DType dtype : {DType::f32, DType::f64}) {
        test.dtype = dtype;
        CAPTURE(bytes, size_of(dtype));
        check_buckets(test, rows);
      }
    }
  });
}

TEST_CASE("rows of one buffer lie in it one after the other, and every buffer starts on 64 bytes") {
  for_each_store([](const StoreCase& test, const std::vector<ParameterRow>& rows) {
    const OwnedStore store(rows, test.shape());
    std::map<std::string, std::int64_t> filled;  // rows of each buffer so far
    for (const LocalParameter& parameter : store->parameters()) {
      const ParameterRow& row = *parameter.row;
      const std::string& name = row.buffer.empty() ? row.name : row.buffer;
      const ParameterBuffer buffer = store->buffer(name);
      CHECK(reinterpret_cast<std::uintptr_t>(buffer.value.data) % 64 == 0);
      CHECK(reinterpret_cast<std::uintptr_t>(buffer.grad.data) % 64 == 0);
      const std::int64_t begin = filled[name];
      filled[name] += local_shape(row)[0];
      CHECK(parameter.value.data == buffer.value.rows(begin, filled[name]).data);
      CHECK(parameter.grad.data == buffer.grad.rows(begin, filled[name]).data);
    }
    for (const auto& [name, length] : filled) {
      CHECK(store->buffer(name).value.shape[0] == length);
      CHECK(store->buffer(name).grad.shape == store->buffer(name).value.shape);
    }
    CHECK(filled.contains("b1.qkv") == test.holds(1));
    CHECK_THROWS_AS(store->buffer("b1.q"), Error);  // a row within a buffer has no buffer of its own
  });
}

TEST_CASE("a tied table has the last bucket to itself, and a second gradient where both its ends lie") {
  for_each_store([](const StoreCase& test, const std::vector<ParameterRow>& rows) {
    const OwnedStore store(rows, test.shape());
    const bool holds_embedding = test.holds(0);
    const bool holds_head = test.holds(kSmallUnits - 1);
    const Tensor second = store->second_tied_gradient();
    if (!test.table.tied || !(holds_embedding || holds_head)) {
      CHECK(store->tied_bucket() == -1);
      CHECK(second.shape.num_dims() == 0);
      return;
    }
    CHECK(store->tied_bucket() == store->num_buckets() - 1);
    const ParameterBuffer table = store->buffer("table");
    CHECK(table.grad.data == store->bucket(store->tied_bucket()).data);
    CHECK(static_cast<std::int64_t>(store->bucket(store->tied_bucket()).num_bytes()) ==
          aligned(static_cast<std::int64_t>(table.grad.num_bytes())));
    const ParameterBuffer of_head = store->head_table("table");
    CHECK(of_head.value.data == table.value.data);
    if (holds_embedding && holds_head) {
      CHECK(second.shape == table.grad.shape);
      CHECK(of_head.grad.data == second.data);
      CHECK_FALSE(lies_in(second, store->gradients()));
    } else {
      CHECK(second.shape.num_dims() == 0);
      CHECK(of_head.grad.data == table.grad.data);
    }
  });
}

TEST_CASE("the gradients that replicas must sum are those of split rows with fewer parts than tp ranks") {
  for_each_store([](const StoreCase& test, const std::vector<ParameterRow>& rows) {
    const OwnedStore store(rows, test.shape());
    std::vector<void*> found, expected;
    for (const Tensor& gradient : store->replica_gradients()) found.push_back(gradient.data);
    for (const LocalParameter& parameter : store->parameters()) {
      const std::string& name = parameter.row->name;
      const bool is_kv = name.ends_with(".k") || name.ends_with(".v");
      if (is_kv && test.table.kv_parts < test.table.tp) expected.push_back(parameter.grad.data);
    }
    CHECK(found == expected);
  });
}
