#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/format.h"
#include "telemetry/append_file.h"
#include "telemetry/timeline.h"

namespace hpt {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;  // handed to the system at a time

constexpr std::array<const char*, 7> kRows = {"actions", "compute", "tp", "pp", "dp", "world", "io"};

// Joins the events into one JSON array, a piece at a time.
class TraceFile {
 public:
  TraceFile(const std::string& path, const Warn& warn) {
    file_.open(path, AppendFile::Open::any, warn);
    text_ = R"({"displayTimeUnit":"ms","traceEvents":[)";
  }
  void add(const Json& json) {
    text_ += is_first_ ? "\n" : ",\n";
    is_first_ = false;
    text_ += json.dump();
    if (text_.size() >= kPieceBytes) flush();
  }
  bool end() {
    text_ += "\n]}\n";
    flush();
    return file_.on();
  }

 private:
  void flush() {
    file_.append(text_);
    text_.clear();
  }

  AppendFile file_;
  std::string text_;
  bool is_first_ = true;
};

void add_names(TraceFile& file, const RankTimeline& rank) {
  const auto name = [&](const char* what, int row, const std::string& text) {
    file.add({{"ph", "M"}, {"name", what}, {"pid", rank.rank}, {"tid", row}, {"args", {{"name", text}}}});
  };
  name("process_name", 0, format("rank {} ({})", rank.rank, rank.place));
  file.add({{"ph", "M"},
            {"name", "process_sort_index"},
            {"pid", rank.rank},
            {"args", {{"sort_index", rank.rank}}}});
  for (std::size_t row = 0; row < kRows.size(); ++row) {
    name("thread_name", static_cast<int>(row), kRows[row]);
    file.add({{"ph", "M"},
              {"name", "thread_sort_index"},
              {"pid", rank.rank},
              {"tid", row},
              {"args", {{"sort_index", row}}}});
  }
}

Json arguments_of(const Event& event) {
  Json arguments = Json::object();
  if (event.micro_batch >= 0) arguments["micro_batch"] = event.micro_batch;
  if (event.chunk >= 0) arguments["chunk"] = event.chunk;
  if (event.detail >= 0) arguments["detail"] = event.detail;
  if (event.peer >= 0) arguments["peer"] = event.peer;
  if (event.num_bytes > 0) arguments["bytes"] = event.num_bytes;
  return arguments;
}

// The same at both ends of a message.
std::string flow_id(int rank, const Event& event) {
  const bool sends = event.flow == EventFlow::send;
  return format("{}-{}-{}-{}", static_cast<int>(event.row), sends ? rank : event.peer,
                sends ? event.peer : rank, event.message);
}

class TimeLine {
 public:
  explicit TimeLine(double begin_s) : begin_s_(begin_s) {}
  // Microseconds, to the nanosecond.
  double of(double seconds) const { return std::round((seconds - begin_s_) * 1e9) / 1e3; }

 private:
  double begin_s_;
};

void add_event(TraceFile& file, const TimeLine& time, int rank, const TimelineEvent& timed) {
  const Event& event = timed.event;
  const int row = static_cast<int>(event.row);
  const double begin = time.of(event.begin_s);
  const double end = time.of(event.end_s);
  file.add({{"ph", "X"},
            {"name", timed.name.data()},
            {"pid", rank},
            {"tid", row},
            {"ts", begin},
            {"dur", end - begin},
            {"args", arguments_of(event)}});
  if (event.flow == EventFlow::none) return;
  const bool sends = event.flow == EventFlow::send;
  Json flow = {{"ph", sends ? "s" : "f"},    {"cat", "message"}, {"name", "message"},
               {"id", flow_id(rank, event)}, {"pid", rank},      {"tid", row},
               {"ts", sends ? begin : end}};
  if (!sends) flow["bp"] = "e";  // ends in the slice around it
  file.add(flow);
}

}  // namespace

TimelineEvent timeline_event(const Event& event) {
  TimelineEvent timed;
  std::strncpy(timed.name.data(), event.name, timed.name.size() - 1);
  timed.event = event;
  timed.event.name = nullptr;
  return timed;
}

bool write_trace(const std::string& path, const std::vector<RankTimeline>& ranks, const Warn& warn) {
  TraceFile file(path, warn);
  double begin = ranks.empty() ? 0 : ranks.front().begin_s;
  for (const RankTimeline& rank : ranks) begin = std::min(begin, rank.begin_s);
  const TimeLine time(begin);
  for (const RankTimeline& rank : ranks) {
    add_names(file, rank);
    for (const TimelineEvent& event : rank.events) add_event(file, time, rank.rank, event);
  }
  if (file.end()) return true;
  std::error_code unknown;
  if (std::filesystem::is_regular_file(path, unknown)) std::filesystem::remove(path, unknown);
  return false;
}

}  // namespace hpt
