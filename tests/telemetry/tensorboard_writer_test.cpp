#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <regex>
#include <vector>

#include "support/temp_folder.h"
#include "telemetry/crc32c.h"
#include "telemetry/event_records.h"
#include "telemetry/run_writers.h"

using namespace hpt;

namespace {

template <typename T>
T take(std::string_view& bytes) {
  REQUIRE(bytes.size() >= sizeof(T));
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

// CRC-32C a bit at a time, the mask with shifts: nothing in common with the product's table.
std::uint32_t slow_masked_crc(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? (crc >> 1) ^ 0x82F63B78U : crc >> 1;
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

std::vector<std::string> records_of(std::string_view file) {
  std::vector<std::string> records;
  while (!file.empty()) {
    const std::string_view length_bytes = file.substr(0, 8);
    const auto length = take<std::uint64_t>(file);
    REQUIRE(take<std::uint32_t>(file) == slow_masked_crc(length_bytes));
    REQUIRE(length <= file.size());
    records.emplace_back(file.substr(0, length));
    file.remove_prefix(length);
    REQUIRE(take<std::uint32_t>(file) == slow_masked_crc(records.back()));
  }
  return records;
}

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take<std::uint8_t>(bytes);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
    REQUIRE(shift < 63);
  }
}

// A protobuf message: the bytes of each field by its number (a varint as 8 bytes). Here no field comes twice.
std::map<int, std::string> fields_of(std::string_view message) {
  std::map<int, std::string> fields;
  while (!message.empty()) {
    const std::uint64_t key = take_varint(message);
    std::uint64_t length = 0;
    std::string value;
    switch (key & 7U) {
      case 0: {
        const std::uint64_t number = take_varint(message);
        value.assign(reinterpret_cast<const char*>(&number), sizeof number);
        break;
      }
      case 1:
        length = 8;
        break;
      case 2:
        length = take_varint(message);
        break;
      case 5:
        length = 4;
        break;
      default:
        FAIL("wire type " << (key & 7U));
    }
    if (length > 0) {
      REQUIRE(length <= message.size());
      value = message.substr(0, length);
      message.remove_prefix(length);
    }
    REQUIRE(fields.emplace(static_cast<int>(key >> 3), value).second);
  }
  return fields;
}

template <typename T>
T number(const std::string& bytes) {
  std::string_view view = bytes;
  const T value = take<T>(view);
  REQUIRE(view.empty());
  return value;
}

struct Scalar {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string tag;
  float value = 0;
};

Scalar decode_scalar(const std::string& record) {
  const auto event = fields_of(record);
  REQUIRE(event.size() == 3);
  const auto summary = fields_of(event.at(5));
  REQUIRE(summary.size() == 1);
  const auto value = fields_of(summary.at(1));
  REQUIRE(value.size() == 2);
  return {number<double>(event.at(1)), number<std::int64_t>(event.at(2)), value.at(1),
          number<float>(value.at(2))};
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path().string());
  return paths;
}

}  // namespace

TEST_CASE("CRC-32C meets the published check values") {
  CHECK(crc32c("123456789") == 0xE3069283U);
  CHECK(crc32c("") == 0);
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AAU);  // RFC 3720, B.4
  CHECK(crc32c(std::string(32, '\xff')) == 0x62A8AB43U);
  CHECK(masked_crc32c("123456789") == slow_masked_crc("123456789"));
}

TEST_CASE("an event file begins with its version and holds every scalar in order") {
  const TempFolder folder;
  const std::string runs = folder / "deep/tensorboard";
  std::vector<Scalar> expected;
  {
    TensorBoardWriter writer(runs, nullptr);
    for (std::int64_t step : {std::int64_t{0}, std::int64_t{1}, std::int64_t{127}, std::int64_t{128},
                              std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::max()}) {
      const double value = std::sqrt(static_cast<double>(step));
      writer.scalar("train/loss", step, value);
      expected.push_back({0, step, "train/loss", static_cast<float>(value)});
    }
    const std::string long_tag(300, 't');
    writer.scalar(long_tag, 5, std::numeric_limits<double>::infinity());
    expected.push_back({0, 5, long_tag, std::numeric_limits<float>::infinity()});
  }
  const auto paths = files_in(runs);
  REQUIRE(paths.size() == 1);
  CHECK(std::regex_match(
      std::filesystem::path(paths[0]).filename().string(),
      std::regex("events\\.out\\.tfevents\\.[0-9]{10}\\..+\\." + std::to_string(::getpid()) + "\\.0")));

  const auto records = records_of(read_file(paths[0]));
  REQUIRE(records.size() == expected.size() + 1);
  const auto version = fields_of(records[0]);
  CHECK(version.at(3) == "brain.Event:2");
  CHECK(number<double>(version.at(1)) > 1.6e9);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Scalar scalar = decode_scalar(records[i + 1]);
    CHECK(scalar.step == expected[i].step);
    CHECK(scalar.tag == expected[i].tag);
    CHECK(scalar.value == expected[i].value);
    CHECK(scalar.wall_time > 1.6e9);
  }
}

TEST_CASE("what was flushed can be read while the writer lives, in whole records") {
  const TempFolder folder;
  TensorBoardWriter writer(folder.path(), nullptr);
  const std::string path = files_in(folder.path()).at(0);
  CHECK(records_of(read_file(path)).size() == 1);
  writer.scalar("loss", 1, 2.5);
  writer.flush();
  CHECK(records_of(read_file(path)).size() == 2);
  for (int step = 2; step < 5000; ++step) writer.scalar("loss", step, 2.5);
  const std::size_t flushed = records_of(read_file(path)).size();  // by itself, as memory fills
  CHECK(flushed > 1000);
  writer.flush();
  CHECK(records_of(read_file(path)).size() == 5000);
}

TEST_CASE("a run that goes on tells from which step, before its own scalars") {
  const TempFolder folder;
  TensorBoardWriter writer(folder.path(), nullptr);
  writer.start_at(301);
  writer.scalar("loss", 301, 2.5);
  writer.flush();
  const auto records = records_of(read_file(files_in(folder.path()).at(0)));
  REQUIRE(records.size() == 3);
  const auto start = fields_of(records[1]);
  CHECK(number<double>(start.at(1)) > 1.6e9);
  CHECK(number<std::int64_t>(start.at(2)) == 301);
  CHECK(number<std::int64_t>(fields_of(start.at(7)).at(1)) == 1);
  CHECK(decode_scalar(records[2]).step == 301);
}

TEST_CASE("two writers in one folder never share a file") {
  const TempFolder folder;
  TensorBoardWriter first(folder.path(), nullptr);
  TensorBoardWriter second(folder.path(), nullptr);
  CHECK(files_in(folder.path()).size() == 2);
}

TEST_CASE("a folder that can't be made is told once and training goes on") {
  const TempFolder folder;
  write_file(folder / "tensorboard", "a file in the way");
  std::vector<std::string> warnings;
  TensorBoardWriter writer(folder / "tensorboard/sub",
                           [&](const std::string& line) { warnings.push_back(line); });
  for (int step = 0; step < 3; ++step) {
    writer.scalar("loss", step, 1);
    writer.flush();
  }
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Catch::Matchers::StartsWith(folder / "tensorboard/sub"));
}
