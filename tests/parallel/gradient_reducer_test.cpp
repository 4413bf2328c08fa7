#include "parallel/gradient_reducer.h"

#include <catch2/catch.hpp>

#include "parallel/small_rows.h"
#include "support/ranks.h"

using namespace hpt;
using namespace hpt::testing;

namespace {

struct ReduceCase {
  SmallTable table;
  int pp = 1;
  int dp = 1;
  int cp = 1;
  bool virtual_stages = false;
  std::size_t bucket_bytes = 300;

  MeshLayout layout() const { return MeshLayout({{"tp", table.tp}, {"cp", cp}, {"pp", pp}, {"dp", dp}}); }
};

// What world rank `rank` adds to local element `i` of a row in a step's backward. Whole numbers, so that sums
// are exact.
double contribution(int rank, int row, std::int64_t i, bool from_head = false) {
  return (rank + 1) * 1000 + row * 31 + static_cast<double>(i % 13) + (from_head ? 500000 : 0);
}

void fill_gradients(const ParameterStore& store, int rank) {
  for (const LocalParameter& parameter : store.parameters())
    for (std::int64_t i = 0; i < parameter.grad.num_elements(); ++i)
      parameter.grad.as<double>()[i] = contribution(rank, parameter.row_index, i);
  const Tensor second = store.second_tied_gradient();
  if (second.shape.num_dims() == 0) return;
  const int row = static_cast<int>(store.parameters().front().row_index);
  for (std::int64_t i = 0; i < second.num_elements(); ++i)
    second.as<double>()[i] = contribution(rank, row, i, true);
}

// As a step does it: the tied table once its exchange is over, replicas at the end.
void reduce(GradientReducer& reducer, const ParameterStore& store) {
  const int tied = store.tied_bucket();
  for (int bucket = 0; bucket < store.num_buckets(); ++bucket)
    if (bucket != tied) reducer.start_bucket(bucket, {});
  if (tied >= 0) {
    reducer.start_tied({});
    reducer.wait_tied({});
    reducer.start_bucket(tied, {});
  }
  for (int bucket = 0; bucket < store.num_buckets(); ++bucket) reducer.wait_bucket(bucket, {});
  reducer.reduce_replicas({});
}

// Do the gradients of `row` on two ranks belong to one sum?
bool sums_with(const ReduceCase& test, const ParameterRow& row, int self, int other) {
  const MeshLayout layout = test.layout();
  const auto part = [&](int rank) {
    const bool is_kv = row.name.ends_with(".k") || row.name.ends_with(".v");
    return layout.coordinate(rank, "tp") * (is_kv ? test.table.kv_parts : test.table.tp) / test.table.tp;
  };
  const auto holds_end = [&](int rank) {
    const int stage = layout.coordinate(rank, "pp");
    return stage == 0 || stage == test.pp - 1;
  };
  const bool same_stage = layout.coordinate(self, "pp") == layout.coordinate(other, "pp");
  return part(self) == part(other) && (row.tied() ? holds_end(other) : same_stage);
}

double expected_sum(const ReduceCase& test, const LocalParameter& parameter, int self, std::int64_t i) {
  const bool two_gradients = parameter.row->tied() && test.pp == 1;
  double sum = 0;
  for (int other = 0; other < test.layout().world_size(); ++other) {
    if (!sums_with(test, *parameter.row, self, other)) continue;
    sum += contribution(other, parameter.row_index, i);
    if (two_gradients) sum += contribution(other, parameter.row_index, i, true);
  }
  return sum;
}

void check_sums(const ReduceCase& test) {
  CAPTURE(test.table.tp, test.table.kv_parts, test.table.tied, test.pp, test.dp, test.cp,
          test.virtual_stages);
  const std::vector<ParameterRow> rows = small_rows(test.table);
  CHECK_NOTHROW(run_ranks(test.layout().world_size(), [&](ProcessGroup& world) {
    const DeviceMesh mesh(test.layout(), world, test.table.kv_parts);
    StoreShape shape = small_shape(test.table.tp, mesh.coordinate("tp"),
                                   small_chunks(test.pp, mesh.coordinate("pp"), test.virtual_stages));
    shape.bucket_bytes = test.bucket_bytes;
    const OwnedStore store(rows, shape);
    GradientReducer reducer(cpu_backend(), mesh, *store);
    for (int step = 0; step < 2; ++step) {
      fill_gradients(*store, world.rank());
      reduce(reducer, *store);
      for (const LocalParameter& parameter : store->parameters()) {
        std::vector<double> expected;
        for (std::int64_t i = 0; i < parameter.grad.num_elements(); ++i)
          expected.push_back(expected_sum(test, parameter, world.rank(), i));
        expect_equal<double>(parameter.grad.span<double>(), expected, parameter.row->name);
      }
    }
  }));
}

}  // namespace

TEST_CASE("a reduced gradient is the sum over data ranks, the tied table's two ends and kv replicas alone") {
  for (const bool tied : {true, false}) {
    check_sums({.table = {1, 1, tied}});
    check_sums({.table = {1, 1, tied}, .dp = 3});
    check_sums({.table = {1, 1, tied}, .pp = 3});
    check_sums({.table = {2, 1, tied}, .pp = 2, .dp = 2});
    check_sums({.table = {2, 2, tied}, .pp = 2, .dp = 2, .virtual_stages = true});
    check_sums({.table = {4, 2, tied}, .dp = 2});
    check_sums({.table = {4, 1, tied}, .pp = 3, .bucket_bytes = 1});
    check_sums({.table = {2, 1, tied}, .dp = 2, .cp = 2, .virtual_stages = true, .bucket_bytes = 1 << 20});
  }
}
