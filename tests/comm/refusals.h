// Arguments that are wrong on their own: every group refuses them, before a peer is troubled.
// For groups of two.
#pragma once

#include "comm/rank_data.h"

namespace hpt::testing {

inline void expect_refused(const std::function<void()>& start, const std::string& what) {
  bool refused = false;
  try {
    start();
  } catch (const Error& error) {
    refused = error.kind() == ErrorKind::runtime &&
              std::string(error.what()).find("group " + what) != std::string::npos;
  }
  check(refused, "refused: " + what);
}

inline void expect_refusals(ProcessGroup& group) {
  std::vector<float> x(5);
  std::vector<float> y(2);
  std::vector<double> z(5);
  const std::string name = group.name();
  expect_refused([&] { group.send(tensor_of(x), 2, {}).join(); }, name + ": send: rank 2 is not");
  expect_refused([&] { group.recv(tensor_of(x), -1, {}).join(); }, name + ": recv: rank -1 is not");
  expect_refused([&] { group.broadcast(tensor_of(x), 7, {}).join(); }, name + ": broadcast: rank 7 is not");
  expect_refused([&] { group.all_gather(tensor_of(x), tensor_of(y), {}).join(); },
                 name + ": all_gather: 5 f32 are not 2 parts of 2 f32");
  expect_refused([&] { group.reduce_scatter(tensor_of(y), tensor_of(z), ReduceOp::sum, {}).join(); },
                 name + ": reduce_scatter: 5 f64 are not 2 parts of 2 f32");
}

inline void expect_partitions_refused(ProcessGroup& group) {
  for (const std::vector<std::vector<int>>& wrong :
       {std::vector<std::vector<int>>{{0}}, {{0, 1}, {1}}, {{0, 2}, {1}}})
    expect_refused([&] { group.split("wrong", wrong); }, "wrong: ");
}

}  // namespace hpt::testing
