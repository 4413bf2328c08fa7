#include "comm/agree_on_fault.h"

#include <vector>

#include "core/host.h"

namespace hpt {

void agree_on_fault(ErrorKind kind, const std::string& fault, ProcessGroup& world) {
  std::int64_t weight = fault.empty() ? 0 : world.size() - world.rank();
  world.all_reduce({&weight, DType::i64, {1}}, ReduceOp::max, {}).join();
  if (weight == 0) return;
  const auto speaker = static_cast<int>(world.size() - weight);
  std::string message = fault;
  if (kind == ErrorKind::runtime)
    message = format("rank {} on host {}: {}", world.rank(), host_name(), fault);
  auto length = static_cast<std::int64_t>(message.size());
  world.broadcast({&length, DType::i64, {1}}, speaker, {}).join();
  message.resize(static_cast<std::size_t>(length));
  world.broadcast({message.data(), DType::u8, {length}}, speaker, {}).join();
  throw AgreedError(kind, message);
}

}  // namespace hpt
