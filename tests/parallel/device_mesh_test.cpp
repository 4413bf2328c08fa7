#include "parallel/device_mesh.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "support/ranks.h"

using namespace hpt;
using namespace hpt::testing;

namespace {

using Ranks = std::vector<int>;

// World ranks of a group's members in the group's order, as they tell each other.
Ranks members(ProcessGroup& group, int world_rank) {
  std::vector<double> all(static_cast<std::size_t>(group.size()), -1);
  double own = world_rank;
  const Tensor out{all.data(), DType::f64, {static_cast<std::int64_t>(all.size())}};
  group.all_gather(out, {&own, DType::f64, {1}}, {}).wait({});
  check(all[static_cast<std::size_t>(group.rank())] == own, "a rank's place in its group is its own");
  return {all.begin(), all.end()};
}

void check_members(ProcessGroup& group, int world_rank, const Ranks& expected) {
  const Ranks found = members(group, world_rank);
  expect_equal<int>(found, expected, format("group {} of world rank {}", group.name(), world_rank));
}

// All ranks with this rank's coordinates on every axis but those of the fold, ascending.
Ranks alike_but(const MeshLayout& layout, int rank, const std::vector<std::string>& fold) {
  Ranks alike;
  for (int other = 0; other < layout.world_size(); ++other) {
    const bool same = std::all_of(layout.axes().begin(), layout.axes().end(), [&](const MeshAxis& axis) {
      return std::find(fold.begin(), fold.end(), axis.name) != fold.end() ||
             layout.coordinate(rank, axis.name) == layout.coordinate(other, axis.name);
    });
    if (same) alike.push_back(other);
  }
  return alike;
}

struct MeshCase {
  std::vector<MeshAxis> axes;  // in any order
  int kv_parts = 1;
};

// Every group of one rank against its definition.
void check_groups(const DeviceMesh& mesh, const MeshLayout& layout, int kv_parts) {
  const int rank = mesh.world().rank();
  const Ranks tp = alike_but(layout, rank, {"tp"});
  const Ranks pp = alike_but(layout, rank, {"pp"});
  check_members(mesh.tp(), rank, tp);
  check_members(mesh.pp(), rank, pp);
  check_members(mesh.data(), rank, alike_but(layout, rank, {"cp", "dp"}));
  const int stage = layout.coordinate(rank, "pp");
  const bool is_end = stage == 0 || stage + 1 == layout.size("pp");
  if (is_end && pp.size() > 1)
    check_members(mesh.tied(), rank, {pp.front(), pp.back()});
  else
    check_members(mesh.tied(), rank, {rank});
  Ranks same_heads;
  for (const int other : tp)
    if (layout.coordinate(other, "tp") * kv_parts / layout.size("tp") ==
        layout.coordinate(rank, "tp") * kv_parts / layout.size("tp"))
      same_heads.push_back(other);
  check_members(mesh.kv_replicas(), rank, same_heads);
  for (const MeshAxis& axis : layout.axes()) {
    check(mesh.size(axis.name) == axis.size, "size of " + axis.name);
    check(mesh.coordinate(axis.name) == layout.coordinate(rank, axis.name), "coordinate on " + axis.name);
  }
}

void check_every_order(MeshCase mesh_case) {
  std::vector<MeshAxis>& axes = mesh_case.axes;
  const auto by_name = [](const MeshAxis& a, const MeshAxis& b) { return a.name < b.name; };
  std::sort(axes.begin(), axes.end(), by_name);
  do {
    const MeshLayout layout(axes);
    CAPTURE(axes[0].name, axes[1].name, axes[2].name, axes[3].name);
    CHECK_NOTHROW(run_ranks(layout.world_size(), [&](ProcessGroup& world) {
      const DeviceMesh mesh(layout, world, mesh_case.kv_parts);
      check_groups(mesh, layout, mesh_case.kv_parts);
    }));
  } while (std::next_permutation(axes.begin(), axes.end(), by_name));
}

}  // namespace

TEST_CASE("each group of a mesh holds the ranks its axes say, in their order, in every order of the axes") {
  check_every_order({{{"tp", 2}, {"cp", 2}, {"pp", 3}, {"dp", 1}}, 1});
  check_every_order({{{"tp", 1}, {"cp", 2}, {"pp", 2}, {"dp", 3}}, 1});
  check_every_order({{{"tp", 4}, {"cp", 1}, {"pp", 1}, {"dp", 2}}, 2});
}

TEST_CASE("the groups of tp 4, pp 3 and dp 2 with two kv parts, written out") {
  run_ranks(24, [](ProcessGroup& world) {
    const DeviceMesh mesh(MeshLayout({{"tp", 4}, {"cp", 1}, {"pp", 3}, {"dp", 2}}), world, 2);
    // All ranks make their groups' exchanges; two of them are looked at.
    const int rank = world.rank();
    const Ranks tp = members(mesh.tp(), rank), pp = members(mesh.pp(), rank);
    const Ranks data = members(mesh.data(), rank), tied = members(mesh.tied(), rank);
    const Ranks kv = members(mesh.kv_replicas(), rank);
    if (rank == 14)  // tp 2, pp 0, dp 1
      check(tp == Ranks{12, 13, 14, 15} && pp == Ranks{14, 18, 22} && data == Ranks{2, 14} &&
                tied == Ranks{14, 22} && kv == Ranks{14, 15},
            "the groups of rank 14");
    if (rank == 17)  // tp 1, pp 1, dp 1
      check(tp == Ranks{16, 17, 18, 19} && pp == Ranks{13, 17, 21} && data == Ranks{5, 17} &&
                tied == Ranks{17} && kv == Ranks{16, 17},
            "the groups of rank 17");
  });
}

TEST_CASE("a mesh refuses a world of another size and kv parts that do not divide tp") {
  const auto make = [](int num_ranks, int kv_parts) {
    run_ranks(num_ranks, [&](ProcessGroup& world) {
      DeviceMesh(MeshLayout({{"tp", 4}, {"cp", 1}, {"pp", 1}, {"dp", 1}}), world, kv_parts);
    });
  };
  CHECK_NOTHROW(make(4, 4));
  CHECK_THROWS(make(2, 1));
  CHECK_THROWS(make(4, 3));
}
