#include "parallel/mesh_layout.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "core/error.h"

using namespace hpt;

namespace {

const std::vector<std::string> kNames = {"tp", "cp", "pp", "dp", "ep"};

MeshLayout random_layout(std::mt19937& random) {
  std::vector<std::string> names = kNames;
  std::shuffle(names.begin(), names.end(), random);
  std::vector<MeshAxis> axes;
  const std::size_t num_axes = 1 + random() % names.size();
  for (std::size_t i = 0; i < num_axes; ++i) axes.push_back({names[i], 1 + static_cast<int>(random() % 5)});
  return MeshLayout(axes);
}

std::vector<std::string> random_fold(const MeshLayout& mesh, std::mt19937& random) {
  std::vector<std::string> fold;
  for (const MeshAxis& axis : mesh.axes())
    if (random() % 2 == 0) fold.push_back(axis.name);
  std::shuffle(fold.begin(), fold.end(), random);
  return fold;
}

bool in_fold(const std::vector<std::string>& fold, const std::string& name) {
  return std::find(fold.begin(), fold.end(), name) != fold.end();
}

// The definition, by comparing all coordinates.
std::vector<int> group_by_definition(const MeshLayout& mesh, int rank, const std::vector<std::string>& fold) {
  std::vector<int> members;
  for (int other = 0; other < mesh.world_size(); ++other) {
    bool same = true;
    for (const MeshAxis& axis : mesh.axes())
      same = same && (in_fold(fold, axis.name) ||
                      mesh.coordinate(rank, axis.name) == mesh.coordinate(other, axis.name));
    if (same) members.push_back(other);
  }
  return members;
}

}  // namespace

TEST_CASE("each rank of a mesh has one coordinate and each coordinate one rank") {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const MeshLayout mesh = random_layout(random);
    std::set<std::vector<int>> seen;
    for (int rank = 0; rank < mesh.world_size(); ++rank) {
      const std::vector<int> place = mesh.coordinates(rank);
      REQUIRE(seen.insert(place).second);
      REQUIRE(mesh.rank(place) == rank);
      for (std::size_t i = 0; i < place.size(); ++i) {
        REQUIRE(place[i] >= 0);
        REQUIRE(place[i] < mesh.axes()[i].size);
        REQUIRE(mesh.coordinate(rank, mesh.axes()[i].name) == place[i]);
      }
    }
  }
}

TEST_CASE("neighbours along the first axis have neighbouring ranks") {
  const MeshLayout mesh({{"tp", 2}, {"cp", 1}, {"pp", 3}, {"dp", 4}});
  CHECK(mesh.world_size() == 24);
  CHECK(mesh.coordinates(0) == std::vector<int>{0, 0, 0, 0});
  CHECK(mesh.coordinates(1) == std::vector<int>{1, 0, 0, 0});
  CHECK(mesh.coordinates(2) == std::vector<int>{0, 0, 1, 0});
  CHECK(mesh.coordinates(6) == std::vector<int>{0, 0, 0, 1});
  CHECK(mesh.group(7, std::vector<std::string>{"pp"}) == std::vector<int>{7, 9, 11});
  CHECK(mesh.group(7, std::vector<std::string>{"dp", "tp"}) == std::vector<int>{0, 1, 6, 7, 12, 13, 18, 19});
  CHECK(mesh.size(std::vector<std::string>{"dp", "tp"}) == 8);
}

TEST_CASE("a fold's groups hold the ranks that differ only along its axes, and each rank once") {
  std::mt19937 random(2);
  for (int round = 0; round < 1000; ++round) {
    const MeshLayout mesh = random_layout(random);
    const std::vector<std::string> fold = random_fold(mesh, random);
    std::vector<int> covered;
    for (const std::vector<int>& group : mesh.partition(fold)) {
      REQUIRE(static_cast<int>(group.size()) == mesh.size(fold));
      covered.insert(covered.end(), group.begin(), group.end());
    }
    std::sort(covered.begin(), covered.end());
    std::vector<int> all(static_cast<std::size_t>(mesh.world_size()));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
    REQUIRE(covered == all);
    const int rank = static_cast<int>(random() % all.size());
    REQUIRE(mesh.group(rank, fold) == group_by_definition(mesh, rank, fold));
  }
}

TEST_CASE("an axis crosses hosts when one of its groups holds ranks of two hosts") {
  std::mt19937 random(3);
  for (int round = 0; round < 1000; ++round) {
    const MeshLayout mesh = random_layout(random);
    const int per_host = 1 + static_cast<int>(random() % 9);
    for (const MeshAxis& axis : mesh.axes()) {
      bool crosses = false;
      for (const std::vector<int>& group : mesh.partition(std::vector<std::string>{axis.name}))
        for (int member : group) crosses = crosses || member / per_host != group.front() / per_host;
      REQUIRE(mesh.crosses_hosts(axis.name, per_host) == crosses);
    }
  }
}

TEST_CASE("a mesh refuses axes of one name, empty axes, unknown names and more ranks than an int counts") {
  CHECK_THROWS_AS(MeshLayout({{"tp", 2}, {"tp", 2}}), Error);
  CHECK_THROWS_AS(MeshLayout({{"tp", 0}}), Error);
  CHECK_THROWS_AS(MeshLayout({{"tp", 65536}, {"dp", 65536}}), Error);
  const MeshLayout mesh({{"tp", 2}});
  CHECK_THROWS_AS(mesh.size("ep"), Error);
  CHECK_THROWS_AS(mesh.coordinate(2, "tp"), Error);
  CHECK_THROWS_AS(mesh.rank(std::vector<int>{2}), Error);
}
