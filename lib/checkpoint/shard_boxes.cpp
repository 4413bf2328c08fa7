#include "checkpoint/shard_boxes.h"

#include <algorithm>

namespace hpt {
namespace {

bool holds(const ShardPlace& place, int unit) {
  return std::any_of(place.chunks.begin(), place.chunks.end(),
                     [&](const UnitRange& chunk) { return chunk.begin <= unit && unit < chunk.end; });
}

bool is_mine(const ParameterRow& row, std::size_t index, const ShardPlace& place) {
  if (!holds(place, row.units.front())) return false;
  const std::vector<int> replicas = replicas_of(row, place.tp_rank, place.tp);
  return replicas[index % replicas.size()] == place.tp_rank;
}

// What a data group shares: elements [begin, end) of all that follows one after the other are this rank's.
struct Share {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// A row of dim 0 belongs to the rank whose share its first element is in.
Box part_within(const Box& box, std::int64_t first, const Share& share) {
  const std::int64_t rows = box.size[0];
  const std::int64_t row_elements = box.num_elements() / rows;
  const auto rows_before = [&](std::int64_t element) {
    return std::clamp<std::int64_t>((element - first + row_elements - 1) / row_elements, 0, rows);
  };
  const std::int64_t begin = share.begin <= first ? 0 : rows_before(share.begin);
  const std::int64_t end = share.end <= first ? 0 : rows_before(share.end);
  Box part = box;
  part.offset[0] = box.offset[0] + begin;
  part.size[0] = end - begin;
  return part;
}

}  // namespace

std::vector<ShardBox> shard_boxes(const std::vector<ParameterRow>& rows, int num_slots,
                                  const ShardPlace& place) {
  std::vector<ShardBox> mine;
  std::int64_t total = 0;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    if (!is_mine(rows[index], index, place)) continue;
    const Box box = box_of(rows[index], place.tp_rank, place.tp);
    if (box.num_elements() == 0) continue;
    for (int slot = 0; slot < num_slots; ++slot)
      mine.push_back({static_cast<int>(index) * num_slots + slot, box});
    total += num_slots * box.num_elements();
  }
  // total * rank stays far under 2^63: 2^40 elements on 2^20 ranks.
  const Share share{total * place.data_rank / place.data_size,
                    total * (place.data_rank + 1) / place.data_size};
  std::vector<ShardBox> result;
  std::int64_t first = 0;
  for (const ShardBox& whole : mine) {
    const Box part = part_within(whole.box, first, share);
    if (part.num_elements() > 0) result.push_back({whole.tensor, part});
    first += whole.box.num_elements();
  }
  return result;
}

}  // namespace hpt
