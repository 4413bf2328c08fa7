#include "telemetry/event_records.h"

#include <bit>
#include <cstring>

#include "telemetry/crc32c.h"

namespace hpt {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

template <typename T>
void put_fixed(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

// Seven bits a byte, the lowest first, the top bit set on all but the last.
void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// A field's key is its number and how its value is written.
enum class Wire : std::uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
void put_key(std::string& out, std::uint32_t field, Wire wire) {
  put_varint(out, (field << 3) | static_cast<std::uint32_t>(wire));
}

void put_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  put_key(out, field, Wire::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string begin_event(double wall_time_s) {
  std::string event;
  put_key(event, 1, Wire::fixed64);
  put_fixed(event, wall_time_s);
  return event;
}

}  // namespace

std::string frame_record(std::string_view data) {
  std::string record;
  put_fixed(record, static_cast<std::uint64_t>(data.size()));
  put_fixed(record, masked_crc32c(record));
  record += data;
  put_fixed(record, masked_crc32c(data));
  return record;
}

std::string encode_version_event(double wall_time_s) {
  std::string event = begin_event(wall_time_s);
  put_bytes(event, 3, "brain.Event:2");
  return event;
}

std::string encode_start_event(double wall_time_s, std::int64_t step) {
  constexpr std::uint64_t kStart = 1;
  std::string log;
  put_key(log, 1, Wire::varint);
  put_varint(log, kStart);
  std::string event = begin_event(wall_time_s);
  put_key(event, 2, Wire::varint);
  put_varint(event, static_cast<std::uint64_t>(step));
  put_bytes(event, 7, log);
  return event;
}

std::string encode_scalar_event(const ScalarEvent& scalar) {
  std::string value;
  put_bytes(value, 1, scalar.tag);
  put_key(value, 2, Wire::fixed32);
  put_fixed(value, scalar.value);
  std::string summary;
  put_bytes(summary, 1, value);
  std::string event = begin_event(scalar.wall_time_s);
  put_key(event, 2, Wire::varint);
  put_varint(event, static_cast<std::uint64_t>(scalar.step));
  put_bytes(event, 5, summary);
  return event;
}

}  // namespace hpt
