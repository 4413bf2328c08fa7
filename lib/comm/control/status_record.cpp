#include "comm/control/status_record.h"

#include <algorithm>

#include "comm/control/blame.h"

namespace hpt {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

template <std::size_t kBytes>
void copy(const std::string& text, std::array<char, kBytes>& into) {
  std::copy_n(text.begin(), std::min(text.size(), kBytes - 1), into.begin());
}

template <std::size_t kBytes>
std::string_view text_in(const std::array<char, kBytes>& bytes) {
  return {bytes.begin(), std::find(bytes.begin(), bytes.end(), '\0')};
}

// What came over the network need not be of the enum.
template <typename Enum>
Enum checked(std::uint32_t value, Enum last) {
  return static_cast<Enum>(std::min(value, static_cast<std::uint32_t>(last)));
}

}  // namespace

StatusRecord record_of(int rank, const RankStatus& status) {
  StatusRecord record;
  record.rank = rank;
  record.phase = static_cast<std::uint32_t>(status.phase.load(kRelaxed));
  record.end = static_cast<std::uint32_t>(status.end.load());
  record.beats = status.beats.load(kRelaxed);
  record.step = status.step.load(kRelaxed);
  record.deadline_s = status.deadline_s.load(kRelaxed);
  record.micro_batch = status.micro_batch.load(kRelaxed);
  record.waits = static_cast<std::int32_t>(status.waits.load(kRelaxed));
  record.waits_for = status.waits_for.load(kRelaxed);
  copy(status.host.text(), record.host);
  copy(status.action.text(), record.action);
  copy(status.op.text(), record.op);
  copy(status.group.text(), record.group);
  return record;
}

void show(const StatusRecord& record, RankStatus& status) {
  status.process.store(static_cast<std::uint32_t>(checked(record.process, ProcessState::gone)), kRelaxed);
  status.starved_s.store(record.starved_s, kRelaxed);
  status.phase.store(checked(record.phase, RunPhase::end), kRelaxed);
  status.beats.store(record.beats, kRelaxed);
  status.step.store(record.step, kRelaxed);
  status.deadline_s.store(record.deadline_s, kRelaxed);
  status.micro_batch.store(record.micro_batch, kRelaxed);
  status.waits.store(record.waits == 0 ? 0 : 1, kRelaxed);
  status.waits_for.store(record.waits_for, kRelaxed);
  status.host.set(text_in(record.host));
  status.action.set(text_in(record.action));
  status.op.set(text_in(record.op));
  status.group.set(text_in(record.group));
  status.end.store(checked(record.end, RankEnd::done));
  status.present.store(1, std::memory_order_release);
}

}  // namespace hpt
