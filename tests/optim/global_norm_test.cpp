#include "optim/global_norm.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "optim/distributed_optimizer.h"
#include "parallel/small_rows.h"
#include "support/ranks.h"

using namespace hpt;
using namespace hpt::testing;

namespace {

struct NormCase {
  SmallTable table;
  int pp = 1;
  int dp = 1;
  bool virtual_stages = false;

  MeshLayout layout() const { return MeshLayout({{"tp", table.tp}, {"cp", 1}, {"pp", pp}, {"dp", dp}}); }
};

// The reduced gradient of element `flat` of a whole row: the same on every rank that holds it.
double gradient_at(int row, std::int64_t flat) {
  return std::sin(static_cast<double>(row * 1000 + flat) + 0.5);
}

// A row's flat index of element (i, j) of this rank's part, or -1 where that is padding.
std::int64_t global_index(const LocalParameter& parameter, std::int64_t local) {
  const Shape& shape = parameter.value.shape;
  const std::int64_t width = shape.num_dims() == 2 ? shape[1] : 1;
  const std::int64_t i = local / width;
  const std::int64_t j = local % width;
  const Box& box = parameter.box;
  if (i >= box.size[0] || (shape.num_dims() == 2 && j >= box.size[1])) return -1;
  const std::int64_t global_width = shape.num_dims() == 2 ? parameter.row->shape[1] : 1;
  return (box.offset[0] + i) * global_width + (shape.num_dims() == 2 ? box.offset[1] + j : 0);
}

void fill_gradients(const ParameterStore& store) {
  for (const LocalParameter& parameter : store.parameters())
    for (std::int64_t i = 0; i < parameter.grad.num_elements(); ++i) {
      const std::int64_t at = global_index(parameter, i);
      if (at >= 0) parameter.grad.as<double>()[i] = gradient_at(parameter.row_index, at);
    }
}

using Spoil = std::function<void(const ParameterStore&)>;
using Look = std::function<void(const GlobalNorm&, const std::vector<double>& entries)>;

// On every rank: gradients, spoilt where `spoil` does so, then the completed entries for `look`.
void with_entries(const NormCase& test, const Spoil& spoil, const Look& look) {
  CAPTURE(test.table.tp, test.table.kv_parts, test.table.tied, test.pp, test.dp, test.virtual_stages);
  const std::vector<ParameterRow> rows = small_rows(test.table);
  CHECK_NOTHROW(run_ranks(test.layout().world_size(), [&](ProcessGroup& world) {
    const DeviceMesh mesh(test.layout(), world, test.table.kv_parts);
    const OwnedStore store(rows,
                           small_shape(test.table.tp, mesh.coordinate("tp"),
                                       small_chunks(test.pp, mesh.coordinate("pp"), test.virtual_stages)));
    fill_gradients(*store);
    spoil(*store);
    const GlobalNorm norm(cpu_backend(), mesh, *store, rows);
    std::vector<double> entries(static_cast<std::size_t>(norm.num_entries()), 0);
    const Tensor view{entries.data(), DType::f64, {norm.num_entries()}};
    norm.fill_entries({}, view);
    world.all_reduce(view, ReduceOp::sum, {}).wait({});
    look(norm, entries);
  }));
}

double norm_by_definition(const std::vector<ParameterRow>& rows) {
  double sum = 0;
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (std::int64_t i = 0; i < rows[row].shape.num_elements(); ++i)
      sum += std::pow(gradient_at(static_cast<int>(row), i), 2);
  return std::sqrt(sum);
}

const std::vector<NormCase> kCases = {
    {{1, 1, true}},
    {{1, 1, false}},
    {{4, 1, true}},
    {{4, 2, false}, 1, 2},
    {{1, 1, true}, 3, 2},
    {{2, 1, true}, 2, 2},
    {{2, 2, false}, 2, 2},
    {{2, 1, true}, 2, 1, true},
    {{3, 1, true}, 1, 2, true},
};

}  // namespace

TEST_CASE("the global norm counts each element once: split, replicated, tied, over stages and data ranks") {
  for (const NormCase& test : kCases) {
    const double expected = norm_by_definition(small_rows(test.table));
    with_entries(
        test, [](const ParameterStore&) {},
        [&](const GlobalNorm& norm, const std::vector<double>& entries) {
          const double found = norm.norm(entries);
          check(std::abs(found - expected) <= 1e-13 * expected, format("norm {} is {}", found, expected));
          check(!norm.first_not_finite(entries), "all entries are finite");
        });
  }
}

TEST_CASE("a gradient that is not finite is named, the first in table order where there are several") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const NormCase& test : kCases) {
    const std::vector<ParameterRow> rows = small_rows(test.table);
    for (std::size_t first = 0; first < rows.size(); ++first)
      with_entries(
          test,
          [&](const ParameterStore& store) {
            for (const LocalParameter& parameter : store.parameters())
              for (std::int64_t i = 0; i < parameter.grad.num_elements(); ++i)
                if (global_index(parameter, i) == 2 && parameter.row_index >= static_cast<int>(first))
                  parameter.grad.as<double>()[i] = first % 2 == 0 ? kNan : -kInfinity;
          },
          [&](const GlobalNorm& norm, const std::vector<double>& entries) {
            const std::string found = norm.first_not_finite(entries).value_or("none");
            check(found == rows[first].name,
                  format("{} is named where {} is right", found, rows[first].name));
            check(!std::isfinite(norm.norm(entries)), "the norm is not finite");
          });
  }
}

TEST_CASE("clipping multiplies by clip / (norm + 1e-6) where that is under 1, else by 1; 0 turns it off") {
  for (const double norm : {0.0, 1e-9, 0.3, 0.999, 1.0, 1.5, 80.0, 1e12})
    for (const double clip : {1e-3, 0.5, 1.0, 7.0}) {
      CAPTURE(norm, clip);
      const double scale = clip / (norm + 1e-6);
      CHECK(clip_scale(norm, clip) == (scale < 1 ? scale : 1.0));
      CHECK(clip_scale(norm, clip) * norm <= clip);
      CHECK(clip_scale(norm, 0) == 1);
    }
}
