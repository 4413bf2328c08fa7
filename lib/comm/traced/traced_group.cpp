#include "comm/traced/traced_group.h"

#include <numeric>
#include <utility>

#include "comm/op_kind.h"
#include "telemetry/event_log.h"

namespace hpt {
namespace {

EventRow row_of(const std::string& group) {
  if (group == "tp" || group == "kv replicas") return EventRow::tp;
  if (group == "pp" || group == "tied") return EventRow::pp;
  return group == "world" ? EventRow::world : EventRow::dp;
}

// An op's name while it is started, and while it is waited for.
const char* start_name(OpKind kind) {
  return name_of(kind).data();  // of a literal
}
const char* wait_name(OpKind kind) {
  switch (kind) {
    case OpKind::all_reduce:
      return "wait all_reduce";
    case OpKind::all_gather:
      return "wait all_gather";
    case OpKind::reduce_scatter:
      return "wait reduce_scatter";
    case OpKind::broadcast:
      return "wait broadcast";
    case OpKind::send:
      return "wait send";
    case OpKind::recv:
      return "wait recv";
    case OpKind::barrier:
      return "wait barrier";
  }
  return "wait";
}

class TracedWork final : public WorkState {
 public:
  TracedWork(Work inner, const Event& event, EventLog* events)
      : inner_(std::move(inner)), event_(event), events_(events) {}

  void join() override {
    event_.begin_s = seconds_now();
    inner_.join();
    event_.end_s = seconds_now();
    events_->add(event_);
  }
  bool done() override { return inner_.done(); }

 private:
  Work inner_;
  Event event_;
  EventLog* events_;
};

class TracedGroup final : public ProcessGroup {
 public:
  TracedGroup(ProcessGroup& inner, std::unique_ptr<ProcessGroup> owned, std::vector<int> world_ranks)
      : inner_(inner),
        owned_(std::move(owned)),
        world_ranks_(std::move(world_ranks)),
        row_(row_of(inner.name())),
        sent_(world_ranks_.size()),
        received_(world_ranks_.size()) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const std::string& name() const override { return inner_.name(); }

  Work all_reduce(const Tensor& x, ReduceOp op, const Stream& stream) override {
    return traced(OpKind::all_reduce, x, stream, [&] { return inner_.all_reduce(x, op, stream); });
  }
  Work all_gather(const Tensor& out, const Tensor& in, const Stream& stream) override {
    return traced(OpKind::all_gather, out, stream, [&] { return inner_.all_gather(out, in, stream); });
  }
  Work reduce_scatter(const Tensor& out, const Tensor& in, ReduceOp op, const Stream& stream) override {
    return traced(OpKind::reduce_scatter, in, stream,
                  [&] { return inner_.reduce_scatter(out, in, op, stream); });
  }
  Work broadcast(const Tensor& x, int root, const Stream& stream) override {
    return traced(OpKind::broadcast, x, stream, [&] { return inner_.broadcast(x, root, stream); });
  }
  Work send(const Tensor& x, int to, const Stream& stream) override {
    return traced(
        OpKind::send, x, stream, [&] { return inner_.send(x, to, stream); }, to);
  }
  Work recv(const Tensor& x, int from, const Stream& stream) override {
    return traced(
        OpKind::recv, x, stream, [&] { return inner_.recv(x, from, stream); }, from);
  }
  void begin_group() override { inner_.begin_group(); }
  void end_group() override { inner_.end_group(); }
  void barrier() override { inner_.barrier(); }

  std::unique_ptr<ProcessGroup> split(const std::string& name,
                                      const std::vector<std::vector<int>>& partition) override {
    std::unique_ptr<ProcessGroup> part = inner_.split(name, partition);
    std::vector<int> members;
    for (const std::vector<int>& ranks : partition)
      for (const int rank : ranks)
        if (rank == inner_.rank())
          for (const int member : ranks) members.push_back(world_ranks_[static_cast<std::size_t>(member)]);
    ProcessGroup& inner = *part;
    return std::make_unique<TracedGroup>(inner, std::move(part), std::move(members));
  }
  void set_deadline(double seconds) override { inner_.set_deadline(seconds); }
  double deadline() const override { return inner_.deadline(); }
  std::size_t exchange_bytes() const override { return inner_.exchange_bytes(); }
  RankStatus& status() override { return inner_.status(); }
  void abort() override { inner_.abort(); }

 private:
  // Numbers a message whether or not it is written down: both ends count alike.
  Event event_of(OpKind kind, const Tensor& x, int peer) {
    Event event{.name = start_name(kind), .row = row_, .num_bytes = static_cast<std::int64_t>(x.num_bytes())};
    if (peer < 0 || peer >= size()) return event;
    const auto place = static_cast<std::size_t>(peer);
    event.peer = world_ranks_[place];
    event.message = kind == OpKind::send ? sent_[place]++ : received_[place]++;
    return event;
  }

  template <typename Start>
  Work traced(OpKind kind, const Tensor& x, const Stream& stream, Start start, int peer = -1) {
    Event event = event_of(kind, x, peer);
    if (stream.events == nullptr || !stream.events->on()) return start();
    // A message leaves where its send starts and arrives where its receive has been waited for.
    if (kind == OpKind::send) event.flow = EventFlow::send;
    event.begin_s = seconds_now();
    Work inner = start();
    event.end_s = seconds_now();
    stream.events->add(event);
    event.name = wait_name(kind);
    event.flow = kind == OpKind::recv ? EventFlow::recv : EventFlow::none;
    return Work(std::make_shared<TracedWork>(std::move(inner), event, stream.events));
  }

  ProcessGroup& inner_;
  std::unique_ptr<ProcessGroup> owned_;  // none: the world, which is the launcher's
  std::vector<int> world_ranks_;
  EventRow row_;
  std::vector<std::int32_t> sent_, received_;  // by group rank
};

}  // namespace

std::unique_ptr<ProcessGroup> make_traced_world(ProcessGroup& world) {
  std::vector<int> ranks(static_cast<std::size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return std::make_unique<TracedGroup>(world, nullptr, std::move(ranks));
}

}  // namespace hpt
