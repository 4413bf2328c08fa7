#include "comm/agree_on_fault.h"

#include "core/host.h"

namespace hpt {

std::string heaviest_text(std::int64_t weight, const std::string& text, ProcessGroup& world) {
  std::int64_t largest = weight;
  world.all_reduce({&largest, DType::i64, {1}}, ReduceOp::max, {}).join();
  if (largest == 0) return "";
  std::int64_t place = weight == largest ? world.size() - world.rank() : 0;
  world.all_reduce({&place, DType::i64, {1}}, ReduceOp::max, {}).join();
  const auto speaker = static_cast<int>(world.size() - place);
  std::string told = text;
  auto length = static_cast<std::int64_t>(told.size());
  world.broadcast({&length, DType::i64, {1}}, speaker, {}).join();
  told.resize(static_cast<std::size_t>(length));
  if (length > 0) world.broadcast({told.data(), DType::u8, {length}}, speaker, {}).join();
  return told;
}

void agree_on_fault(ErrorKind kind, const std::string& fault, ProcessGroup& world) {
  std::string own = fault;
  if (kind == ErrorKind::runtime) own = format("rank {} on host {}: {}", world.rank(), host_name(), fault);
  const std::string told = heaviest_text(fault.empty() ? 0 : 1, own, world);
  if (!told.empty()) throw AgreedError(kind, told);
}

}  // namespace hpt
