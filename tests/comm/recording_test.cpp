#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "comm/recording/recording_group.h"
#include "comm/refusals.h"
#include "comm/thread/thread_world.h"

namespace hpt {
namespace {

TEST_CASE("a recording world writes down every op of every group and changes no data") {
  const auto recording = std::make_shared<Recording>();
  const auto world = make_recording_world(3, 8, recording);
  const auto pairs = world->split("tp", {{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  CHECK(world->rank() == 3);
  CHECK(world->size() == 8);
  CHECK(pairs->rank() == 1);
  CHECK(pairs->size() == 2);

  std::vector<float> in = {1, 2};
  std::vector<float> out = {5, 6, 7, 8};
  const Tensor part{in.data(), DType::f32, {2}};
  const Tensor whole{out.data(), DType::f32, {4}};
  const Stream stream;
  pairs->all_reduce(part, ReduceOp::sum, stream).join();
  pairs->all_gather(whole, part, stream).join();
  pairs->reduce_scatter(part, whole, ReduceOp::max, stream).join();
  world->broadcast(part, 6, stream).join();
  world->send(part, 4, stream).join();
  world->recv(whole, 2, stream).join();
  world->barrier();
  pairs->barrier();

  CHECK(in == std::vector<float>{1, 2});
  CHECK(out == std::vector<float>{5, 6, 7, 8});
  const std::vector<RecordedOp> expected = {
      {"tp", 2, OpKind::all_reduce, 8, -1},      {"tp", 2, OpKind::all_gather, 16, -1},
      {"tp", 2, OpKind::reduce_scatter, 16, -1}, {"world", 8, OpKind::broadcast, 8, 6},
      {"world", 8, OpKind::send, 8, 4},          {"world", 8, OpKind::recv, 16, 2},
      {"world", 8, OpKind::barrier, 0, -1},      {"tp", 2, OpKind::barrier, 0, -1}};
  REQUIRE(recording->ops.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(recording->ops[i].group == expected[i].group);
    CHECK(recording->ops[i].group_size == expected[i].group_size);
    CHECK(recording->ops[i].kind == expected[i].kind);
    CHECK(recording->ops[i].bytes == expected[i].bytes);
    CHECK(recording->ops[i].peer == expected[i].peer);
  }
}

TEST_CASE("a recording group refuses what every group refuses and records none of it") {
  const auto recording = std::make_shared<Recording>();
  const auto world = make_recording_world(5, 8, recording);
  const auto pairs = world->split("pairs", {{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  testing::expect_refusals(*pairs);
  testing::expect_partitions_refused(*pairs);
  CHECK(recording->ops.empty());
}

TEST_CASE("a recording needs no memory behind its tensors") {
  const auto recording = std::make_shared<Recording>();
  const auto world = make_recording_world(0, 16384, recording);
  world->all_reduce({nullptr, DType::f64, {1 << 20, 1 << 12}}, ReduceOp::sum, {}).join();
  CHECK(recording->ops.at(0).bytes == std::int64_t{8} << 32);
}

// Groups as a mesh makes them, and messages to two neighbours.
std::size_t exchange_bytes_of(ProcessGroup& world) {
  const auto pairs = world.split("tp", {{0, 1}, {2, 3}});
  const auto lines = world.split("pp", {{0, 2}, {1, 3}});
  const auto alone = world.split("tied", {{0}, {1}, {2}, {3}});
  std::vector<float> sent(3);
  std::vector<float> received(3);
  for (ProcessGroup* group : {lines.get(), lines.get(), pairs.get()}) {
    const int peer = 1 - group->rank();
    Work send = group->send({sent.data(), DType::f32, {3}}, peer, {});
    group->recv({received.data(), DType::f32, {3}}, peer, {}).join();
    send.join();
  }
  world.barrier();
  return world.exchange_bytes();
}

TEST_CASE("a recording tells the shared memory that a rank's groups take on a host, to the byte") {
  const auto worlds = make_thread_worlds(4, 60);
  std::vector<std::size_t> real(4);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < 4; ++rank)
    threads.emplace_back([&, rank] { real[rank] = exchange_bytes_of(*worlds[rank]); });
  for (std::thread& thread : threads) thread.join();
  for (int rank = 0; rank < 4; ++rank) {
    const auto world = make_recording_world(rank, 4, std::make_shared<Recording>());
    CHECK(exchange_bytes_of(*world) == real[static_cast<std::size_t>(rank)]);
  }
  // Groups that span hosts exchange by messages: of these, only the pairs lie on one.
  const auto apart = make_recording_world(0, 4, std::make_shared<Recording>(), 2);
  CHECK(exchange_bytes_of(*apart) < real[0] / 2);
}

}  // namespace
}  // namespace hpt
