#include "comm/control/monitor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

#include "comm/control/deadline.h"
#include "comm/control/process_probe.h"
#include "core/clock.h"
#include "core/format.h"

namespace hpt {
namespace {

constexpr int kPeriodMs = 200;
constexpr int kPauseMs = 10;
constexpr double kLongestGap = 0.5;  // s a look counts at most: the job may have been suspended
// Past the deadline, as shares of the time that is left then:
constexpr double kOwnDeadline = 0.25;      // in which the rank itself should have told
constexpr double kLeastOwnDeadline = 0.5;  // s
constexpr double kOtherHost = 0.25;        // more for the host of the one to blame to tell
constexpr double kUnexplained = 0.5;       // more before a wait is told that nothing explains
constexpr double kMpiItself = 30;          // s more in a call of MPI that all ranks make together
constexpr double kLastResort = 15;         // s that ranks which failed may take to end the job
constexpr std::chrono::milliseconds kLineOut{100};

// Past the library's buffers and locks, which may belong to a blocked rank. A console that takes nothing,
// such as a pipe that nobody reads, must not keep the job from its end.
void write_line(std::string line) {
  constexpr std::size_t kGoesAtOnce = 4000;  // into a pipe that is writable at all
  constexpr int kLongestMs = 1000;
  line.resize(std::min(line.size(), kGoesAtOnce));
  line += '\n';
  pollfd console{STDERR_FILENO, POLLOUT, 0};
  if (poll(&console, 1, kLongestMs) == 0) return;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

Monitor::Monitor(const MonitorOptions& options) : options_(options), wake_(eventfd(0, EFD_CLOEXEC)) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the rank
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {  // no more threads to be had: the job does without
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Monitor::~Monitor() {
  stop_ = true;
  eventfd_write(wake_, 1);
  if (thread_.joinable()) thread_.join();
  for (const Peer& peer : peers_)
    if (peer.process >= 0) close(peer.process);
  close(wake_);
  delete new_links_.load();
}

void Monitor::add(std::unique_ptr<HostLinks> links) {
  new_links_ = links.release();
  eventfd_write(wake_, 1);
}

void Monitor::run() {
  try {
    watch();
  } catch (const std::exception&) {  // no memory: the rank has its own story to tell of that
  }
}

void Monitor::watch() {
  double last = seconds_now();
  while (!stop_) {
    sleep();
    if (stop_) break;
    const double now = seconds_now();
    look(std::min(now - last, kLongestGap));
    last = now;
  }
  if (links_) links_->say_goodbye();
}

// Other hosts may not wake it without a pause: whoever finds the port could keep it busy.
void Monitor::sleep() {
  std::vector<pollfd> sources{{wake_, POLLIN, 0}};
  std::vector<Peer*> asked;
  for (Peer& peer : peers_) {
    if (peer.process < 0) continue;
    sources.push_back({peer.process, POLLIN, 0});
    asked.push_back(&peer);
  }
  const std::size_t num_here = sources.size();
  if (links_) links_->add_sources(sources);
  poll(sources.data(), sources.size(), kPeriodMs);
  const auto is_ready = [](const pollfd& source) { return source.revents != 0; };
  if (std::none_of(sources.begin(), sources.begin() + static_cast<std::ptrdiff_t>(num_here), is_ready) &&
      std::any_of(sources.begin(), sources.end(), is_ready))
    poll(sources.data(), num_here, kPauseMs);
  for (std::size_t i = 0; i < asked.size(); ++i) asked[i]->may_be_gone = is_ready(sources[i + 1]);
  eventfd_t count = 0;
  if (is_ready(sources.front())) eventfd_read(wake_, &count);
}

void Monitor::find_peers() {
  for (int rank = 0; rank < options_.board->size(); ++rank) {
    if (rank == options_.rank || !is_watched(options_.board->of(rank))) continue;
    const bool known =
        std::any_of(peers_.begin(), peers_.end(), [&](const Peer& peer) { return peer.rank == rank; });
    if (!known) peers_.push_back({rank, open_process(options_.board->of(rank).pid)});
  }
}

void Monitor::look(double seconds) {
  if (HostLinks* links = new_links_.exchange(nullptr)) links_.reset(links);
  if (options_.board->teller() == Teller::monitor) leave();
  find_peers();
  look_at_links(seconds);
  if (options_.board->any_failed()) {
    failed_s_ += seconds;
    if (failed_s_ > kLastResort) leave();
    return;
  }
  look_for_gone();
  if (const auto lost = links_ ? links_->lost_host() : std::nullopt) tell(*lost, {});
  look_at_own_wait(seconds);
}

void Monitor::look_at_links(double seconds) {
  if (!links_) return;
  links_->exchange(seconds);
  if (links_->told()) {
    options_.board->claim_word(Teller::monitor);
    leave();
  }
}

void Monitor::look_for_gone() {
  const StatusBoard& board = *options_.board;
  const auto is_gone = [&](Peer& peer) {
    const RankStatus& status = board.of(peer.rank);
    if (!peer.may_be_gone || state_of(status.pid, status.born) != ProcessState::gone) return false;
    if (peer.process >= 0) close(std::exchange(peer.process, -1));  // it would wake us again and again
    peer.may_be_gone = false;
    return status.end.load() == RankEnd::none;
  };
  if (std::any_of(peers_.begin(), peers_.end(), is_gone)) {
    const std::vector<RankView> ranks = board.look();
    const Blame blame = find_gone(ranks);
    if (blame.fault != Fault::none && !board.any_failed())
      tell(to_line(blame, ranks, 0, options_.rank), blame);
  }
}

void Monitor::look_at_own_wait(double seconds) {
  const StatusBoard& board = *options_.board;
  const RankStatus& own = board.of(options_.rank);
  waited_s_ += seconds;
  const bool lives = vain_.look(board, options_.rank, waited_s_);
  const std::uint64_t beats = own.beats;
  if (std::exchange(own_beats_, beats) != beats || lives) waited_s_ = 0;
  const double left_s = time_to_end(own.deadline_s);
  const double waited_s = waited_s_ - std::max(kOwnDeadline * left_s, kLeastOwnDeadline);
  const double over = waited_s - own.deadline_s;
  if (own.waits == 0 || own.deadline_s <= 0 || over < 0) return;
  if (!vain_.is_over(board, waited_s, own.deadline_s)) return;
  const std::vector<RankView> ranks = board.look();
  Blame blame = judge(ranks, options_.rank);
  if (blame.fault == Fault::absent && !options_.all_here) blame = {};
  // In a call of MPI's own, such as its end, ranks that all wait may well come through.
  const bool in_mpi = own.group.text().empty();
  if (blame.fault == Fault::none || (blame.fault == Fault::deadlock && in_mpi)) {
    if (over > (in_mpi ? kMpiItself : kUnexplained * left_s))
      tell(format("rank {}: waits in {}, and nothing came for {} s", options_.rank, own.op.text(),
                  own.deadline_s.load()),
           {});
    return;
  }
  if (over < kOtherHost * left_s && !is_watched(board.of(blame.ranks.front()))) return;
  tell(to_line(blame, ranks, own.deadline_s, options_.rank), blame);
}

// One that is stopped cannot end by itself.
void Monitor::tell(const std::string& line, const Blame& blame) {
  if (options_.board->claim_word(Teller::monitor)) {
    write_line(line);
    if (links_) links_->tell_all();
    for (const int rank : blame.ranks) {
      const RankStatus& blamed = options_.board->of(rank);
      if (rank != options_.rank && is_watched(blamed) &&
          state_of(blamed.pid, blamed.born) == ProcessState::stopped)
        kill(blamed.pid, SIGKILL);
    }
  }
  leave();
}

void Monitor::leave() {
  std::this_thread::sleep_for(kLineOut);
  _exit(1);
}

}  // namespace hpt
