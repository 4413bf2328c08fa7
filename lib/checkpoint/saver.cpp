#include "checkpoint/saver.h"

#include <array>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "checkpoint/hash_sums.h"
#include "checkpoint/safetensors.h"
#include "comm/agree_on_fault.h"
#include "core/hash.h"

namespace hpt {
namespace {

std::string reason_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

// One sum over the ranks brings it all: how many failed; each tensor's quarters; and each rank's file hash,
// in a place where all others add 0.
struct Saver::Votes {
  Votes(std::size_t num_tensors, int world_size)
      : values(1 + kQuarters * num_tensors + static_cast<std::size_t>(world_size)),
        num_tensors_(num_tensors) {}

  std::int64_t& num_failed() { return values[0]; }
  std::int64_t* quarters(int tensor) { return &values[1 + kQuarters * static_cast<std::size_t>(tensor)]; }
  const std::int64_t* quarters(std::size_t tensor) const { return &values[1 + kQuarters * tensor]; }
  std::int64_t& file_hash(int rank) {
    return values[1 + kQuarters * num_tensors_ + static_cast<std::size_t>(rank)];
  }
  std::uint64_t file_hash(int rank) const {
    return static_cast<std::uint64_t>(values[1 + kQuarters * num_tensors_ + static_cast<std::size_t>(rank)]);
  }
  bool any_failed() const { return values[0] > 0; }

  std::vector<std::int64_t> values;

 private:
  std::size_t num_tensors_;
};

Saver::Saver(FileSystem& files, CheckpointPlan plan, ProcessGroup& world, Log& log)
    : files_(files), plan_(std::move(plan)), world_(world), log_(log) {}

// Before the members go that its thread works on.
Saver::~Saver() {
  task_.join();
}

void Saver::begin(const SavePoint& point, const std::vector<ShardSource>& sources) {
  HPT_REQUIRE(part_ == Part::none);
  point_ = point;
  sources_ = sources;
  open_folder();
  layout_ = make_shard_layout(shard_name(world_.rank()), plan_.tensors, plan_.boxes_of_rank(world_.rank()),
                              id_, point_.step);
  part_ = Part::shards;
  task_.start([this] { write_own_shard(); });
}

// Rank 0 makes the folder and draws the checkpoint's name for the shards.
void Saver::open_folder() {
  std::exception_ptr failure;
  std::int64_t drawn = 0;
  if (world_.rank() == 0) {
    try {
      folder_ = begin_checkpoint(files_, plan_.root, point_.step);
      id_ = new_checkpoint_id();
      drawn = static_cast<std::int64_t>(std::stoull(id_, nullptr, 16));
    } catch (const Error&) {
      failure = std::current_exception();
    }
  }
  std::vector<std::int64_t> told = {failure ? 1 : 0, drawn};
  all_reduce_sum(told, world_);
  Votes votes(0, 0);
  votes.num_failed() = told[0];
  require_no_failure(votes, failure);
  id_ = format("{:016x}", static_cast<std::uint64_t>(told[1]));
  folder_ = uncommitted_path(plan_.root, point_.step);
}

void Saver::write_own_shard() {
  written_ = {};
  if (layout_.boxes.empty()) return;
  written_ = write_shard(files_, folder_, layout_, plan_.tensors, sources_, progress_);
  // A step looks at its loss and gradients; what came of them may still be too large for its type.
  if (!written_.not_finite.empty())
    fail(ErrorKind::runtime, "{} is not finite; the checkpoint before stays", written_.not_finite);
}

void Saver::advance() {
  if (part_ == Part::shards) return vote_on_shards();
  if (part_ == Part::commit) end_commit();
}

void Saver::finish() {
  while (part_ != Part::none) {
    wait_for_task();
    advance();
  }
}

// Whoever watches this rank sees that the disk gets on.
void Saver::wait_for_task() {
  const ShownWait shown(world_.status(), "the disk", "");
  std::uint64_t seen = progress_;
  while (!task_.done()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (progress_ == seen) continue;
    seen = progress_;
    world_.status().beat();
  }
}

Saver::Votes Saver::vote(const std::exception_ptr& failure) {
  Votes votes(plan_.tensors.size(), world_.size());
  votes.num_failed() = failure ? 1 : 0;
  if (!failure) {
    for (std::size_t i = 0; i < written_.hashes.size(); ++i)
      add_quarters(votes.quarters(layout_.boxes[i].tensor), written_.hashes[i]);
    votes.file_hash(world_.rank()) = static_cast<std::int64_t>(written_.hash);
  }
  all_reduce_sum(votes.values, world_);
  return votes;
}

void Saver::require_no_failure(const Votes& votes, const std::exception_ptr& own) {
  if (!votes.any_failed()) return;
  part_ = Part::none;
  if (world_.rank() == 0) discard_checkpoint(files_, plan_.root, point_.step);
  const std::string fault =
      own ? format("step {}: can't save a checkpoint: {}", point_.step, reason_of(own)) : std::string();
  agree_on_fault(ErrorKind::runtime, fault, world_);
}

void Saver::vote_on_shards() {
  const std::exception_ptr failure = task_.join();
  Votes votes = vote(failure);
  require_no_failure(votes, failure);
  part_ = Part::commit;
  if (world_.rank() == 0) task_.start([this, votes = std::move(votes)] { commit(manifest_of(votes)); });
}

Manifest Saver::manifest_of(const Votes& votes) const {
  Manifest manifest;
  manifest.id = id_;
  manifest.step = point_.step;
  manifest.samples = point_.samples;
  manifest.tokens = point_.tokens;
  manifest.data = plan_.data;
  manifest.data_samples = plan_.data_samples;
  manifest.config = plan_.config;
  manifest.mesh = plan_.mesh;
  for (std::size_t i = 0; i < plan_.tensors.size(); ++i) {
    const TensorKind& kind = plan_.tensors[i];
    manifest.tensors.push_back({kind.name, kind.dtype, kind.shape, of_quarters(votes.quarters(i)), {}});
  }
  for (int rank = 0; rank < world_.size(); ++rank) {
    std::vector<ShardBox> boxes = plan_.boxes_of_rank(rank);
    if (boxes.empty()) continue;
    const ShardLayout layout =
        make_shard_layout(shard_name(rank), plan_.tensors, std::move(boxes), id_, point_.step);
    add_shard(manifest, layout, votes.file_hash(rank));
  }
  return manifest;
}

// In the thread of rank 0's task.
void Saver::commit(const Manifest& manifest) {
  warnings_.clear();
  commit_checkpoint(files_, plan_.root, manifest);
  progress_.fetch_add(1);
  try {
    remove_old_checkpoints(files_, plan_.root, plan_.retention,
                           [this](const std::string& line) { warnings_.push_back(line); });
  } catch (const Error& error) {  // the new one is there
    warnings_.push_back(format("an old checkpoint was not removed: {}", error.what()));
  }
}

void Saver::end_commit() {
  const std::exception_ptr failure = task_.join();
  std::vector<std::int64_t> told = {failure ? 1 : 0};
  all_reduce_sum(told, world_);
  Votes votes(0, 0);
  votes.num_failed() = told[0];
  require_no_failure(votes, failure);
  part_ = Part::none;
  for (const std::string& line : warnings_) log_.warn(line);
  log_.info(format("step {}: checkpoint committed", point_.step));
}

}  // namespace hpt
