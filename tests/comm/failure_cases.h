// What every transport promises when something is wrong.
#pragma once

#include <catch2/catch.hpp>

#include "comm/rank_data.h"
#include "comm/refusals.h"

namespace hpt::testing {

inline void expect_told(const std::vector<RankFailure>& failures, const std::vector<std::string>& parts) {
  std::string told;
  for (const RankFailure& failure : failures)
    if (failure.kind == ErrorKind::runtime || failure.kind == ErrorKind::silent)
      told += failure.message + "\n";
  for (const std::string& part : parts) {
    INFO(told);
    CHECK(told.find(part) != std::string::npos);
  }
}

TEST_CASE("an abort ends every wait of every rank") {
  const auto failures = failures_of({4, 120}, [](ProcessGroup& world) {
    const auto pairs = world.split("pairs", {{0, 1}, {2, 3}});
    float x = 1;
    const Tensor tensor{&x, DType::f32, {1}};
    if (world.rank() == 0) {
      world.abort();
    } else if (world.rank() == 1) {
      pairs->recv(tensor, 0, {}).join();
    } else if (world.rank() == 2) {
      world.all_reduce(tensor, ReduceOp::sum, {}).join();
    } else {
      world.barrier();
    }
  });
  REQUIRE(failures.size() == 3);
  for (const RankFailure& failure : failures) {
    INFO(failure.message);
    CHECK(failure.kind == ErrorKind::aborted);
  }
}

TEST_CASE("a wait past the deadline names the group, the op, the rank and the one waited for") {
  const auto failures = failures_of({3, 60}, [](ProcessGroup& world) {
    const auto pairs = world.split("pairs", {{2, 0}, {1}});
    world.set_deadline(1);
    std::vector<float> x(5);
    if (world.rank() == 0) pairs->recv(tensor_of(x), 0, {}).join();
  });
  REQUIRE(failures.size() == 1);
  expect_told(failures, {"rank 0: group pairs: recv of 5 f32 waits for rank 2", "1 s"});
}

TEST_CASE("a deadline reaches every group of the rank that sets it") {
  const auto failures = failures_of({4, 100}, [](ProcessGroup& world) {
    const auto before = world.split("before", {{0, 1}, {2, 3}});
    world.set_deadline(1);
    const auto after = world.split("after", {{3, 0}, {1, 2}});
    check(before->deadline() == 1 && after->deadline() == 1, "deadline");
    float x = 1;
    const Tensor tensor{&x, DType::f32, {1}};
    if (world.rank() == 0) before->recv(tensor, 1, {}).join();
  });
  REQUIRE(failures.size() == 1);
  expect_told(failures, {"rank 0: group before: recv of 1 f32 waits for rank 1: nothing came for 1 s"});
}

TEST_CASE("the buffer of a wait that failed is the caller's again: what comes late is not written to it") {
  std::vector<float> in(1000, -1);
  const auto failures = failures_of({2, 60}, [&](ProcessGroup& world) {
    std::vector<float> out(in.size(), 5);
    bool failed = false;
    if (world.rank() == 0) {
      world.set_deadline(0.3);
      try {
        world.recv(tensor_of(in), 1, {}).join();
      } catch (const Error&) {
        failed = true;
      }
      world.set_deadline(60);
      check(failed, "a deadline of 0.3 s passes");
      float token = 0;
      world.send(Tensor{&token, DType::f32, {1}}, 1, {}).join();
    } else {
      float token = 0;
      world.recv(Tensor{&token, DType::f32, {1}}, 0, {}).join();
      world.send(tensor_of(out), 0, {}).join();
    }
    world.barrier();
  });
  CHECK(failures.empty());
  CHECK(in == std::vector<float>(in.size(), -1));
}

TEST_CASE("a collective past the deadline names a rank that has not come") {
  const auto failures = failures_of({3, 60}, [](ProcessGroup& world) {
    world.set_deadline(1);
    std::vector<float> x(5);
    if (world.rank() != 1) world.all_reduce(tensor_of(x), ReduceOp::sum, {}).join();
  });
  REQUIRE(failures.size() == 2);
  expect_told(failures, {"group world: all_reduce (sum) of 5 f32 waits for rank 1"});
}

TEST_CASE("a message that is longer than its receiver thinks is told") {
  const auto failures = failures_of({2, 60}, [](ProcessGroup& world) {
    std::vector<float> x(world.rank() == 0 ? 8 : 4);
    if (world.rank() == 0)
      world.send(tensor_of(x), 1, {}).join();
    else
      world.recv(tensor_of(x), 0, {}).join();
    world.barrier();
  });
  expect_told(failures, {"rank 1: group world: recv of 4 f32 here meets send of 8 f32 on rank 0"});
}

TEST_CASE("collectives that differ in kind, size, dtype or root are told") {
  using Start = std::function<void(ProcessGroup&)>;
  struct Disagreement {
    Start first;
    Start second;
    std::string told;
  };
  const Start sum = [](ProcessGroup& world) {
    std::vector<float> x(4);
    world.all_reduce(tensor_of(x), ReduceOp::sum, {}).join();
    world.barrier();
  };
  const auto broadcast_from = [](int root) -> Start {
    return [root](ProcessGroup& world) {
      std::vector<float> x(4);
      world.broadcast(tensor_of(x), root, {}).join();
      world.barrier();
    };
  };
  const std::vector<Disagreement> all = {
      {sum,
       [](ProcessGroup& world) {
         std::vector<float> x(6);
         world.all_reduce(tensor_of(x), ReduceOp::sum, {}).join();
         world.barrier();
       },
       "all_reduce (sum) of 6 f32"},
      {sum,
       [](ProcessGroup& world) {
         std::vector<float> x(4);
         world.all_reduce(tensor_of(x), ReduceOp::max, {}).join();
         world.barrier();
       },
       "all_reduce (max) of 4 f32"},
      {sum,
       [](ProcessGroup& world) {
         std::vector<std::int32_t> x(4);
         world.all_reduce(tensor_of(x), ReduceOp::sum, {}).join();
         world.barrier();
       },
       "all_reduce (sum) of 4 i32"},
      {sum, [](ProcessGroup& world) { world.barrier(); }, "barrier"},
      {broadcast_from(0), broadcast_from(1), "broadcast of 4 f32 from rank 1 here meets"},
  };
  for (const Disagreement& pair : all) {
    const auto failures = failures_of({3, 60}, [&](ProcessGroup& world) {
      if (world.rank() == 2)
        pair.second(world);
      else
        pair.first(world);
    });
    CHECK(failures.size() == 3);
    expect_told(failures, {pair.told, "here meets"});
  }
}

TEST_CASE("a peer outside the group and parts that do not fit are refused") {
  run_ranks(2, [](ProcessGroup& world) {
    expect_refusals(world);
    world.barrier();
  });
}

}  // namespace hpt::testing
