#include "train/step_tracer.h"

#include <algorithm>
#include <limits>

#include "telemetry/timeline.h"

namespace hpt {
namespace {

constexpr int kClockRounds = 8;

// Blocking messages of plain values between a rank and rank 0.
template <typename T>
void exchange_value(ProcessGroup& world, T& value, int peer, bool sends) {
  const Tensor tensor{&value, DType::u8, {static_cast<std::int64_t>(sizeof(T))}};
  (sends ? world.send(tensor, peer, {}) : world.recv(tensor, peer, {})).join();
}

// What has to be added to this rank's clock to read rank 0's: the answer of the quickest question counts,
// taken to have been read half-way (Cristian, 1989).
double offset_to_first_rank(ProcessGroup& world) {
  double least = std::numeric_limits<double>::infinity();
  double offset = 0;
  for (int round = 0; round < kClockRounds; ++round) {
    double question = seconds_now();
    exchange_value(world, question, 0, true);
    double answer = 0;
    exchange_value(world, answer, 0, false);
    const double back = seconds_now();
    if (back - question >= least) continue;
    least = back - question;
    offset = answer - (question + back) / 2;
  }
  return offset;
}

void answer_with_clock(ProcessGroup& world, int peer) {
  for (int round = 0; round < kClockRounds; ++round) {
    double question = 0;
    exchange_value(world, question, peer, false);
    double answer = seconds_now();
    exchange_value(world, answer, peer, true);
  }
}

struct Header {
  double begin_s = 0;
  double end_s = 0;
  std::int64_t num_events = 0;
  std::int64_t is_cut = 0;
};

std::string place_of(const MeshLayout& mesh, int rank) {
  std::string place;
  for (const MeshAxis& axis : mesh.axes())
    place += format("{}{} {}", place.empty() ? "" : ", ", axis.name, mesh.coordinate(rank, axis.name));
  return place;
}

Tensor bytes_of(std::vector<TimelineEvent>& events) {
  return {events.data(), DType::u8, {static_cast<std::int64_t>(events.size() * sizeof(TimelineEvent))}};
}

void send_timeline(ProcessGroup& world, Header header, std::vector<TimelineEvent> events) {
  const double offset = offset_to_first_rank(world);
  header.begin_s += offset;
  header.end_s += offset;
  for (TimelineEvent& timed : events) {
    timed.event.begin_s += offset;
    timed.event.end_s += offset;
  }
  exchange_value(world, header, 0, true);
  if (!events.empty()) world.send(bytes_of(events), 0, {}).join();
}

RankTimeline receive_timeline(const DeviceMesh& mesh, int rank, bool& is_cut) {
  answer_with_clock(mesh.world(), rank);
  Header header;
  exchange_value(mesh.world(), header, rank, false);
  is_cut = is_cut || header.is_cut != 0;
  RankTimeline timeline{rank, place_of(mesh.layout(), rank), header.begin_s, header.end_s, {}};
  timeline.events.resize(static_cast<std::size_t>(header.num_events));
  if (!timeline.events.empty()) mesh.world().recv(bytes_of(timeline.events), rank, {}).join();
  return timeline;
}

}  // namespace

StepTracer::StepTracer(const RunConfig& config, RankEngine& engine, const RunFolder* folder, Log& log)
    : config_(config), engine_(engine), folder_(folder), log_(log) {}

bool StepTracer::is_traced(std::int64_t step) const {
  const std::vector<std::int64_t>& steps = config_.log.trace_steps;
  return std::find(steps.begin(), steps.end(), step) != steps.end();
}

void StepTracer::begin() {
  engine_.events().start(capacity_);
  engine_.mesh().world().barrier();  // so that all begin together
  begin_s_ = seconds_now();
}

void StepTracer::end(std::int64_t step) {
  EventLog& log = engine_.events();
  const Header header{begin_s_, seconds_now(), static_cast<std::int64_t>(log.events().size()),
                      log.is_cut() ? 1 : 0};
  log.stop();
  std::vector<TimelineEvent> events;
  events.reserve(log.events().size());
  for (const Event& event : log.events()) events.push_back(timeline_event(event));
  const DeviceMesh& mesh = engine_.mesh();
  if (mesh.rank() > 0) return send_timeline(mesh.world(), header, std::move(events));

  bool is_cut = header.is_cut != 0;
  std::vector<RankTimeline> ranks;
  ranks.push_back({0, place_of(mesh.layout(), 0), header.begin_s, header.end_s, std::move(events)});
  for (int rank = 1; rank < mesh.world().size(); ++rank)
    ranks.push_back(receive_timeline(mesh, rank, is_cut));
  const std::string path = folder_->path(format("trace-{:06}.json", step));
  const bool is_written = write_trace(path, ranks, [this](const std::string& line) { log_.warn(line); });
  log_.info(format("step {}: {}where its {:.1f} ms went, mean of {}:\n{}", step,
                   is_written ? format("its timeline is in {}; ", path) : "", 1e3 * break_down(ranks).total,
                   counted(ranks.size(), "rank"), to_text(break_down(ranks))));
  if (is_cut)
    log_.warn(format("step {}: its timeline is cut: some rank did more than {} things", step, capacity_));
}

}  // namespace hpt
