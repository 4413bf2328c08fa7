// What every transport promises about collectives: test cases that transport_test.cpp runs over threads and
// transport_mpi_test.cpp over MPI ranks.
#pragma once

#include <array>
#include <catch2/catch.hpp>

#include "comm/rank_data.h"
#include "comm/refusals.h"

namespace hpt::testing {

// Nothing, odd counts, and one that needs several pieces.
inline constexpr std::array<std::int64_t, 7> kCounts = {0, 1, 3, 7, 1000, 20011, 1000003};
inline constexpr std::array<int, 5> kSizes = {1, 2, 3, 5, 8};

template <typename T>
void reduce_over(ProcessGroup& world, ReduceOp op, std::int64_t count) {
  std::vector<T> x = made_up_values<T>(world.rank(), count);
  world.all_reduce(tensor_of(x), op, {}).join();
  expect_equal(x, reduced<T>(world.size(), op, count), format("{} elements", count));
}

TEST_CASE("a sum adds in ascending rank order, bit for bit, whatever its size") {
  for (int size : kSizes)
    run_ranks(size, [](ProcessGroup& world) {
      for (std::int64_t count : kCounts) reduce_over<float>(world, ReduceOp::sum, count);
      reduce_over<double>(world, ReduceOp::sum, 20011);
    });
}

TEST_CASE("integers are summed and every dtype has a maximum") {
  run_ranks(3, [](ProcessGroup& world) {
    reduce_over<std::int32_t>(world, ReduceOp::sum, 20011);
    reduce_over<std::int64_t>(world, ReduceOp::sum, 20011);
    for (std::int64_t count : {1, 20011}) {
      reduce_over<float>(world, ReduceOp::max, count);
      reduce_over<double>(world, ReduceOp::max, count);
      reduce_over<std::int32_t>(world, ReduceOp::max, count);
      reduce_over<std::int64_t>(world, ReduceOp::max, count);
    }
  });
}

TEST_CASE("a gather puts the ranks' parts in rank order") {
  for (int size : kSizes)
    run_ranks(size, [](ProcessGroup& world) {
      for (std::int64_t count : {0, 1, 7, 300007}) {
        std::vector<float> in = made_up_values<float>(world.rank(), count);
        std::vector<float> out(in.size() * static_cast<std::size_t>(world.size()));
        world.all_gather(tensor_of(out), tensor_of(in), {}).join();
        std::vector<float> expected;
        for (int rank = 0; rank < world.size(); ++rank)
          for (float value : made_up_values<float>(rank, count)) expected.push_back(value);
        expect_equal(out, expected, format("{} elements of each", count));
      }
    });
}

TEST_CASE("a reduce-scatter leaves each rank its part of the sum") {
  for (int size : kSizes)
    run_ranks(size, [](ProcessGroup& world) {
      for (std::int64_t count : {0, 1, 7, 70001}) {
        std::vector<double> in = made_up_values<double>(world.rank(), count * world.size());
        std::vector<double> out(static_cast<std::size_t>(count));
        world.reduce_scatter(tensor_of(out), tensor_of(in), ReduceOp::sum, {}).join();
        expect_equal(out, reduced<double>(world.size(), ReduceOp::sum, count, count * world.rank()),
                     format("{} elements of each", count));
      }
    });
}

TEST_CASE("a gather and a reduce-scatter may work in place") {
  run_ranks(4, [](ProcessGroup& world) {
    const std::int64_t count = 90001;
    std::vector<float> x = made_up_values<float>(world.rank(), count * world.size());
    const Tensor own = tensor_of(x).rows(count * world.rank(), count * (world.rank() + 1));
    world.reduce_scatter(own, tensor_of(x), ReduceOp::sum, {}).join();
    world.all_gather(tensor_of(x), own, {}).join();
    expect_equal(x, reduced<float>(world.size(), ReduceOp::sum, count * world.size()), "sum");
  });
}

TEST_CASE("a broadcast brings the root's data to all, from any root") {
  for (int size : kSizes)
    run_ranks(size, [](ProcessGroup& world) {
      for (int root = 0; root < world.size(); ++root)
        for (std::int64_t count : {0, 5, 300007}) {
          std::vector<float> x = made_up_values<float>(world.rank(), count);
          world.broadcast(tensor_of(x), root, {}).join();
          expect_equal(x, made_up_values<float>(root, count), format("{} elements of rank {}", count, root));
        }
    });
}

TEST_CASE("several collectives of one group can be outstanding at once") {
  run_ranks(4, [](ProcessGroup& world) {
    const std::int64_t count = 150001;
    std::vector<std::vector<float>> buckets;
    std::vector<Work> works;
    for (int bucket = 0; bucket < 6; ++bucket)
      buckets.push_back(made_up_values<float>(world.rank(), count, bucket * count));
    for (auto& bucket : buckets) works.push_back(world.all_reduce(tensor_of(bucket), ReduceOp::sum, {}));
    std::vector<float> small = made_up_values<float>(world.rank(), 3);
    world.broadcast(tensor_of(small), 2, {}).join();
    expect_equal(small, made_up_values<float>(2, 3), "broadcast");
    for (std::size_t bucket = works.size(); bucket-- > 0;) {
      works[bucket].join();
      works[bucket].join();
      expect_equal(buckets[bucket],
                   reduced<float>(4, ReduceOp::sum, count, static_cast<std::int64_t>(bucket) * count),
                   "bucket");
    }
  });
}

TEST_CASE("done() alone brings an op to its end") {
  run_ranks(3, [](ProcessGroup& world) {
    std::vector<float> x = made_up_values<float>(world.rank(), 400009);
    Work work = world.all_reduce(tensor_of(x), ReduceOp::sum, {});
    while (!work.done()) {
    }
    expect_equal(x, reduced<float>(3, ReduceOp::sum, 400009), "sum");
  });
}

TEST_CASE("nobody leaves a barrier before all have come") {
  for (int size : {1, 2, 7})
    run_ranks(size, [](ProcessGroup& world) {
      for (int round = 0; round < 20; ++round) {
        if (world.rank() == round % world.size()) {
          for (int to = 0; to < world.size(); ++to)
            if (to != world.rank()) world.send(Tensor{&round, DType::i32, {1}}, to, {}).join();
        }
        world.barrier();
        // What was sent before the barrier is there after it.
        int came = round;
        if (world.rank() != round % world.size())
          world.recv(Tensor{&came, DType::i32, {1}}, round % world.size(), {}).join();
        check(came == round, "round");
      }
    });
}

TEST_CASE("groups that were split off work at the same time, in their own rank order") {
  run_ranks(6, [](ProcessGroup& world) {
    const auto rows = world.split("rows", {{0, 1, 2}, {5, 4, 3}});
    const auto columns = world.split("columns", {{0, 3}, {1, 4}, {2, 5}});
    const auto alone = rows->split("alone", {{2}, {0, 1}});
    check(rows->rank() == (world.rank() < 3 ? world.rank() : 5 - world.rank()), "rank in rows");
    check(columns->rank() == world.rank() / 3 && columns->size() == 2 && columns->name() == "columns",
          "columns");
    check(alone->size() == (rows->rank() == 2 ? 1 : 2), "alone");
    const std::int64_t count = 200003;
    std::vector<float> a = made_up_values<float>(rows->rank(), count);
    std::vector<float> b = made_up_values<float>(columns->rank(), count, 11);
    std::vector<float> c = made_up_values<float>(alone->rank(), count, 22);
    Work first = rows->all_reduce(tensor_of(a), ReduceOp::sum, {});
    Work second = columns->all_reduce(tensor_of(b), ReduceOp::sum, {});
    Work third = alone->all_reduce(tensor_of(c), ReduceOp::sum, {});
    third.join();
    second.join();
    first.join();
    expect_equal(a, reduced<float>(3, ReduceOp::sum, count), "rows");
    expect_equal(b, reduced<float>(2, ReduceOp::sum, count, 11), "columns");
    expect_equal(c, reduced<float>(alone->size(), ReduceOp::sum, count, 22), "alone");
  });
}

TEST_CASE("a partition that leaves a rank out or lists one twice is refused") {
  run_ranks(2, expect_partitions_refused);
}

}  // namespace hpt::testing
