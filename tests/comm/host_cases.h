// What holds wherever the ranks of a group lie: on one host, across hosts, some here and some there. Eight
// ranks, which transport_mpi_test.cpp puts on hosts in several ways.
#pragma once

#include <catch2/catch.hpp>

#include "comm/rank_data.h"

namespace hpt::testing {

using Partition = std::vector<std::vector<int>>;

// Within hosts of 4 and within hosts of 3; across them; mixed, in orders of their own; one rank alone.
inline const std::vector<Partition>& host_partitions() {
  static const std::vector<Partition> all = {
      {{0, 1, 2, 3}, {4, 5, 6, 7}},     {{3, 4, 5}, {0, 1, 2}, {7, 6}}, {{0, 4}, {1, 5}, {2, 6}, {3, 7}},
      {{6, 3, 0}, {7, 4, 1}, {5, 2}},   {{5, 1, 0, 7, 2}, {3, 4}, {6}}, {{7, 6, 5, 4, 3, 2, 1, 0}},
      {{2, 3}, {1, 0}, {4, 5}, {6, 7}}, {{0}, {1, 2, 3, 4, 5, 6}, {7}},
  };
  return all;
}

// All kinds of ops, outstanding at once, in one group whose data begin at `first`.
struct GroupTraffic {
  GroupTraffic(ProcessGroup& of, std::int64_t start, std::int64_t num)
      : group(of),
        first(start),
        count(num),
        sum(made_up_values<float>(of.rank(), num, start)),
        part(made_up_values<float>(of.rank(), num, start)),
        parts(part.size() * static_cast<std::size_t>(of.size())),
        out(part),
        in(part.size()),
        told(part) {
    const int size = group.size();
    works.push_back(group.recv(tensor_of(in), (group.rank() + size - 1) % size, {}));
    works.push_back(group.all_reduce(tensor_of(sum), ReduceOp::sum, {}));
    works.push_back(group.send(tensor_of(out), (group.rank() + 1) % size, {}));
    works.push_back(group.all_gather(tensor_of(parts), tensor_of(part), {}));
    works.push_back(group.broadcast(tensor_of(told), size - 1, {}));
  }

  void finish() {
    for (std::size_t i = works.size(); i-- > 0;) works[i].join();
    const int size = group.size();
    expect_equal(sum, reduced<float>(size, ReduceOp::sum, count, first), group.name() + ": sum");
    expect_equal(in, made_up_values<float>((group.rank() + size - 1) % size, count, first), "message");
    expect_equal(told, made_up_values<float>(size - 1, count, first), group.name() + ": broadcast");
    std::vector<float> expected;
    for (int member = 0; member < size; ++member)
      for (float value : made_up_values<float>(member, count, first)) expected.push_back(value);
    expect_equal(parts, expected, group.name() + ": gather");
  }

  ProcessGroup& group;
  std::int64_t first;
  std::int64_t count;
  std::vector<float> sum, part, parts, out, in, told;
  std::vector<Work> works;
};

TEST_CASE("groups within a host, across hosts and mixed work at the same time") {
  run_ranks(8, [](ProcessGroup& world) {
    std::vector<std::unique_ptr<ProcessGroup>> groups;
    for (const Partition& partition : host_partitions()) groups.push_back(world.split("parts", partition));
    for (std::int64_t count : {3, 40009}) {
      std::vector<std::unique_ptr<GroupTraffic>> traffic;
      traffic.push_back(std::make_unique<GroupTraffic>(world, 5, count));
      for (std::size_t i = 0; i < groups.size(); ++i)
        traffic.push_back(
            std::make_unique<GroupTraffic>(*groups[i], static_cast<std::int64_t>(7 * i), count));
      for (std::size_t i = traffic.size(); i-- > 0;) traffic[i]->finish();
    }
  });
}

TEST_CASE("a group across hosts can be split into groups on one host, and again across") {
  run_ranks(8, [](ProcessGroup& world) {
    const auto mixed = world.split("mixed", {{7, 0, 4, 1, 5}, {3, 2, 6}});
    const bool five = mixed->size() == 5;
    const auto inner = mixed->split("inner", five ? Partition{{1, 3}, {2, 4, 0}} : Partition{{0, 1}, {2}});
    const auto halves = world.split("halves", {{0, 1, 2, 3}, {4, 5, 6, 7}});
    const auto pairs = halves->split("pairs", {{0, 3}, {2, 1}});
    for (ProcessGroup* group : {mixed.get(), inner.get(), halves.get(), pairs.get()}) {
      GroupTraffic traffic(*group, 3, 20011);
      traffic.finish();
    }
  });
}

// Each of the others waits in another kind of group, within its host or across.
TEST_CASE("an abort of any rank ends the waits of all, on its host and on others") {
  for (int failing : {0, 3, 5, 7}) {
    const auto failures = failures_of({8, 60}, [&](ProcessGroup& world) {
      const auto halves = world.split("halves", {{0, 1, 2, 3}, {4, 5, 6, 7}});
      const auto thirds = world.split("thirds", {{0, 1, 2}, {3, 4, 5}, {6, 7}});
      const auto across = world.split("across", {{0, 4}, {1, 5}, {2, 6}, {3, 7}});
      float x = 1;
      const Tensor tensor{&x, DType::f32, {1}};
      if (world.rank() == failing) fail(ErrorKind::runtime, "the disk is full");
      if (world.rank() % 4 == 0) halves->recv(tensor, (halves->rank() + 1) % 4, {}).join();
      if (world.rank() % 4 == 1) thirds->recv(tensor, (thirds->rank() + 1) % thirds->size(), {}).join();
      if (world.rank() % 4 == 2) across->recv(tensor, 1 - across->rank(), {}).join();
      world.barrier();
    });
    REQUIRE(failures.size() == 8);
    for (const RankFailure& failure : failures) {
      INFO(failure.message);
      CHECK(failure.kind == (failure.rank == failing ? ErrorKind::runtime : ErrorKind::aborted));
    }
  }
}

}  // namespace hpt::testing
