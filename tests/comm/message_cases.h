// What every transport promises about sends and receives.
#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <ctime>
#include <thread>

#include "comm/rank_data.h"

namespace hpt::testing {

TEST_CASE("messages between a pair arrive in order, empty ones too") {
  run_ranks(2, [](ProcessGroup& world) {
    const std::vector<std::int64_t> counts = {0, 1, 3, 7, 0, 1000003, 5};
    for (std::int64_t count : counts) {
      std::vector<float> x = made_up_values<float>(world.rank(), count);
      if (world.rank() == 0) {
        world.send(tensor_of(x), 1, {}).join();
      } else {
        world.recv(tensor_of(x), 0, {}).join();
        expect_equal(x, made_up_values<float>(0, count), format("{} elements", count));
      }
    }
  });
}

TEST_CASE("two ranks exchange 32 MiB both ways, sends first") {
  run_ranks(2, [](ProcessGroup& world) {
    std::vector<std::int32_t> out(std::size_t{8} << 20, world.rank() + 1);
    std::vector<std::int32_t> in(out.size());
    Work send = world.send(tensor_of(out), 1 - world.rank(), {});
    world.recv(tensor_of(in), 1 - world.rank(), {}).join();
    send.join();
    check(in == std::vector<std::int32_t>(out.size(), 2 - world.rank()), "what came is what was sent");
  });
}

TEST_CASE("receives may be posted long before their sends, grouped or not") {
  run_ranks(4, [](ProcessGroup& world) {
    const int next = (world.rank() + 1) % world.size();
    const int previous = (world.rank() + world.size() - 1) % world.size();
    std::vector<std::vector<double>> in;
    std::vector<std::vector<double>> out;
    for (std::int64_t message = 0; message < 8; ++message) {
      in.emplace_back(static_cast<std::size_t>(message * 5003));
      out.push_back(made_up_values<double>(world.rank(), message * 5003, message));
    }
    std::vector<Work> works;
    for (auto& message : in) works.push_back(world.recv(tensor_of(message), previous, {}));
    world.begin_group();
    for (auto& message : out) works.push_back(world.send(tensor_of(message), next, {}));
    world.end_group();
    for (std::size_t i = works.size(); i-- > 0;) works[i].join();
    for (std::size_t i = 0; i < in.size(); ++i) {
      const auto message = static_cast<std::int64_t>(i);
      expect_equal(in[i], made_up_values<double>(previous, message * 5003, message), "message");
    }
  });
}

// Far more than any transport keeps for a receiver: it deadlocks if a grouped send waits for its receive, or
// for the send before it.
TEST_CASE("grouped sends and receives do not wait for each other: rings both ways, sends first") {
  for (int size : {3, 8})
    run_ranks(size, [](ProcessGroup& world) {
      const int next = (world.rank() + 1) % world.size();
      const int previous = (world.rank() + world.size() - 1) % world.size();
      const std::size_t count = std::size_t{2} << 20;
      std::vector<std::int64_t> up(count, world.rank());
      std::vector<std::int64_t> down(count, 100 + world.rank());
      std::vector<std::int64_t> from_previous(count);
      std::vector<std::int64_t> from_next(count);
      std::vector<Work> works;
      world.begin_group();
      works.push_back(world.send(tensor_of(up), next, {}));
      works.push_back(world.send(tensor_of(down), previous, {}));
      works.push_back(world.recv(tensor_of(from_next), next, {}));
      works.push_back(world.recv(tensor_of(from_previous), previous, {}));
      world.end_group();
      for (Work& work : works) work.join();
      check(from_previous == std::vector<std::int64_t>(count, previous), "upwards");
      check(from_next == std::vector<std::int64_t>(count, 100 + next), "downwards");
    });
}

inline double cpu_seconds_of_thread() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

TEST_CASE("a rank that waits gives its core away") {
  run_ranks(6, [](ProcessGroup& world) {
    float x = 0;
    const Tensor tensor{&x, DType::f32, {1}};
    if (world.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      for (int to = 1; to < world.size(); ++to) world.send(tensor, to, {}).join();
      return;
    }
    const double before = cpu_seconds_of_thread();
    world.recv(tensor, 0, {}).join();
    const double used = cpu_seconds_of_thread() - before;
    check(used < 0.2, format("{} s of CPU in 1 s of waiting are little", used));
  });
}

TEST_CASE("a rank can send to itself") {
  run_ranks(2, [](ProcessGroup& world) {
    const std::int64_t count = 3000001;
    std::vector<float> out = made_up_values<float>(world.rank(), count);
    std::vector<float> in(out.size());
    Work send = world.send(tensor_of(out), world.rank(), {});
    world.recv(tensor_of(in), world.rank(), {}).join();
    send.join();
    expect_equal(in, out, "message");
  });
}

TEST_CASE("groups' messages between the same two ranks do not mix") {
  run_ranks(2, [](ProcessGroup& world) {
    const auto other = world.split("other", {{1, 0}});
    std::vector<float> a = made_up_values<float>(1, 1000);
    std::vector<float> b = made_up_values<float>(2, 2000);
    if (world.rank() == 0) {
      Work first = world.send(tensor_of(a), 1, {});
      Work second = other->send(tensor_of(b), 0, {});
      first.join();
      second.join();
    } else {
      std::vector<float> from_other(2000);
      std::vector<float> from_world(1000);
      other->recv(tensor_of(from_other), 1, {}).join();
      world.recv(tensor_of(from_world), 0, {}).join();
      expect_equal(from_other, b, "other");
      expect_equal(from_world, a, "world");
    }
  });
}

// A pipeline's and its gradients' traffic together: messages flow on while sums of other groups
// are outstanding.
TEST_CASE("messages flow while collectives are outstanding") {
  run_ranks(4, [](ProcessGroup& world) {
    const auto data = world.split("data", {{0, 1}, {2, 3}});
    const auto pipe = world.split("pipe", {{0, 2}, {1, 3}});
    const std::int64_t count = 400009;
    for (int round = 0; round < 3; ++round) {
      std::vector<float> bucket = made_up_values<float>(data->rank(), count, round);
      std::vector<float> activation = made_up_values<float>(world.rank(), count, round);
      std::vector<float> gradient(activation.size());
      Work sum = data->all_reduce(tensor_of(bucket), ReduceOp::sum, {});
      Work send = pipe->send(tensor_of(activation), 1 - pipe->rank(), {});
      pipe->recv(tensor_of(gradient), 1 - pipe->rank(), {}).join();
      expect_equal(gradient, made_up_values<float>((world.rank() + 2) % 4, count, round), "message");
      send.join();
      sum.join();
      expect_equal(bucket, reduced<float>(2, ReduceOp::sum, count, round), "sum");
    }
  });
}

// Random traffic, the same list on all ranks: each op is some pair's message or a group's collective; works
// are joined in an order of each rank's own.
TEST_CASE("random mixtures of ops over several groups all come true") {
  const CounterRng random(42, RngPurpose::test);
  for (std::uint64_t trial = 0; trial < 6; ++trial) {
    const int size = 2 + static_cast<int>(random.bits(trial)[0] % 5);
    run_ranks(size, [&](ProcessGroup& world) {
      const auto copy = world.split("copy", [&] {
        std::vector<int> all;
        for (int rank = size - 1; rank >= 0; --rank) all.push_back(rank);
        return std::vector<std::vector<int>>{all};
      }());
      struct Started {
        Work work;
        std::vector<float> data;
        std::vector<float> expected;
      };
      std::vector<std::unique_ptr<Started>> started;
      for (std::uint64_t op = 0; op < 60; ++op) {
        const auto words = random.bits(op, trial + 1);
        ProcessGroup& group = words[0] % 2 == 0 ? world : *copy;
        const auto count = static_cast<std::int64_t>(words[1] % 5 == 0 ? words[1] % 300000 : words[1] % 300);
        const int from = static_cast<int>(words[2]) & 0xff;
        const int sender = from % size;
        const int receiver = static_cast<int>(words[3] % static_cast<std::uint32_t>(size));
        auto item = std::make_unique<Started>();
        item->data = made_up_values<float>(group.rank(), count, static_cast<std::int64_t>(op));
        item->expected = item->data;
        const Tensor x = tensor_of(item->data);
        if (words[0] % 3 == 0) {
          item->work = group.all_reduce(x, ReduceOp::sum, {});
          item->expected = reduced<float>(size, ReduceOp::sum, count, static_cast<std::int64_t>(op));
        } else if (words[0] % 3 == 1) {
          item->work = group.broadcast(x, sender, {});
          item->expected = made_up_values<float>(sender, count, static_cast<std::int64_t>(op));
        } else if (sender != receiver && group.rank() == sender) {
          item->work = group.send(x, receiver, {});
        } else if (sender != receiver && group.rank() == receiver) {
          item->work = group.recv(x, sender, {});
          item->expected = made_up_values<float>(sender, count, static_cast<std::int64_t>(op));
        }
        started.push_back(std::move(item));
      }
      for (std::size_t i = 0; i < started.size(); ++i) {
        Started& item = *started[(i * 7 + static_cast<std::size_t>(world.rank())) % started.size()];
        item.work.join();
      }
      for (const auto& item : started) expect_equal(item->data, item->expected, "op");
    });
  }
}

}  // namespace hpt::testing
