// A rank's status as it travels between hosts, whose programs are the same.
#pragma once

#include <array>
#include <cstdint>

#include "telemetry/rank_status.h"

namespace hpt {

struct StatusRecord {
  std::int32_t rank = 0;
  std::uint32_t process = 0;  // a ProcessState
  std::uint32_t phase = 0;
  std::uint32_t end = 0;
  std::uint64_t beats = 0;
  std::int64_t step = 0;
  double deadline_s = 0;
  double starved_s = 0;
  std::int32_t micro_batch = -1;
  std::int32_t waits = 0;
  std::int32_t waits_for = RankStatus::kNobody;
  std::array<char, 64> host{};
  std::array<char, 24> action{};
  std::array<char, 24> op{};
  std::array<char, 24> group{};
};

// `process` and `starved_s` are left for the caller to find.
StatusRecord record_of(int rank, const RankStatus& status);

// Writes another host's rank into a board.
void show(const StatusRecord& record, RankStatus& status);

}  // namespace hpt
