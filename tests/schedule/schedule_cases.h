// Random pipelines for property tests: any shape, uneven chunks, buckets that end anywhere and may span
// chunks, tied or not. Everything follows from the generator's seed.
#pragma once

#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/format.h"
#include "schedule/pipeline_schedule.h"
#include "schedule/schedules/table.h"

namespace hpt::testing {

struct ScheduleCase {
  std::string_view schedule = "1f1b";
  PipelineShape shape;
  std::vector<RankUnits> units;  // by rank
};

inline int below(std::mt19937& random, int end) {
  return static_cast<int>(random() % static_cast<unsigned>(end));
}

inline std::vector<RankUnits> random_units(const PipelineShape& shape, bool tied, std::mt19937& random) {
  std::vector<RankUnits> units(static_cast<std::size_t>(shape.num_ranks));
  for (RankUnits& rank : units) {
    rank.chunks.resize(static_cast<std::size_t>(shape.num_chunks));
    int bucket = 0;
    bool first = true;
    for (auto chunk = rank.chunks.rbegin(); chunk != rank.chunks.rend(); ++chunk) {
      chunk->bucket_of_unit.resize(1 + static_cast<std::size_t>(below(random, 6)));
      for (auto unit = chunk->bucket_of_unit.rbegin(); unit != chunk->bucket_of_unit.rend(); ++unit) {
        if (!first && below(random, 3) == 0) ++bucket;
        *unit = below(random, 10) == 0 ? -1 : bucket;
        first = false;
      }
    }
    rank.holds_tied_embedding = tied && &rank == &units.front();
    rank.holds_tied_head = tied && &rank == &units.back();
    if (rank.holds_tied_embedding || rank.holds_tied_head) rank.tied_bucket = bucket + below(random, 2);
  }
  return units;
}

inline ScheduleCase random_case(std::mt19937& random) {
  ScheduleCase test;
  const ScheduleRow& row = kSchedules[below(random, static_cast<int>(std::size(kSchedules)))];
  test.schedule = row.name;
  test.shape.num_ranks = 1 + below(random, 8);
  test.shape.num_chunks = row.takes_chunks ? 1 + below(random, 4) : 1;
  test.shape.num_micro_batches = 1 + below(random, 20);
  test.units = random_units(test.shape, below(random, 2) == 0, random);
  return test;
}

// Compute, communication and reductions.
inline PipelineSchedule finished_schedule(const ScheduleCase& test) {
  PipelineSchedule schedule = make_schedule(test.schedule, test.shape, test.units);
  add_communication(schedule);
  add_reductions(schedule, test.units);
  return schedule;
}

inline std::string describe(const ScheduleCase& test) {
  return format("{}, p {}, v {}, m {}", test.schedule, test.shape.num_ranks, test.shape.num_chunks,
                test.shape.num_micro_batches);
}

// One unit a chunk, one bucket a unit, not tied.
inline ScheduleCase plain_case(std::string_view name, PipelineShape shape) {
  ScheduleCase test{name, shape, {}};
  for (int rank = 0; rank < shape.num_ranks; ++rank) {
    RankUnits units;
    for (int chunk = 0; chunk < shape.num_chunks; ++chunk)
      units.chunks.push_back({{shape.num_chunks - 1 - chunk}});
    test.units.push_back(units);
  }
  return test;
}

}  // namespace hpt::testing
