// What TensorBoard reads, as bytes: TFRecord frames around protobuf messages of the kind tensorflow.Event.
// Written by hand: the few fields that scalars need.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hpt {

// u64 length, u32 masked CRC of it, data, u32 masked CRC of the data; little-endian.
std::string frame_record(std::string_view data);

// Event {1: wall_time, 3: file_version "brain.Event:2"}: the first record of every file.
std::string encode_version_event(double wall_time_s);

// Event {1: wall_time, 2: step, 7: SessionLog {1: START}}: readers drop what older files tell of `step` and
// later.
std::string encode_start_event(double wall_time_s, std::int64_t step);

struct ScalarEvent {
  double wall_time_s = 0;
  std::int64_t step = 0;
  std::string_view tag;
  float value = 0;
};

// Event {1: wall_time, 2: step, 5: Summary {1: Value {1: tag, 2: simple_value}}}.
std::string encode_scalar_event(const ScalarEvent& scalar);

}  // namespace hpt
