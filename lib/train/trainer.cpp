#include "train/trainer.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "checkpoint/probe.h"
#include "comm/control/deadline.h"
#include "config/load.h"
#include "core/clock.h"
#include "core/hash.h"
#include "core/process_memory.h"
#include "data/micro_batch_loader.h"
#include "optim/lr_schedule.h"
#include "train/agree.h"
#include "train/checkpoint_plan.h"
#include "train/checkpointer.h"
#include "train/evaluate.h"
#include "train/generate.h"
#include "train/planned_engine.h"
#include "train/replica_check.h"
#include "train/resume.h"
#include "train/step_reporter.h"
#include "train/step_tracer.h"
#include "train/straggler_watch.h"

namespace hpt {
namespace {

LoaderOptions loader_options(const RunConfig& config, const std::vector<DataSource>& sources, bool shuffle) {
  LoaderOptions options;
  options.sources = sources;
  options.seq_length = config.model.seq_length;
  options.vocab_size = config.model.vocab_size;
  options.seed = config.run.seed;
  options.shuffle = shuffle;
  if (shuffle) options.min_samples = config.batch.global;
  return options;
}

void log_start(const RunPlan& plan, const RankEngine& engine, const Stream& stream, Log& log) {
  const ParallelSection& parallel = plan.config.parallel;
  log.info(format("{}: {} parameters; tp {} x pp {} x dp {}; {} of {} a step; {} a rank",
                  plan.config.run.name, count_parameters(plan.spec), parallel.tp, parallel.pp, parallel.dp,
                  counted(plan.config.num_micro_batches(), "micro-batch", "micro-batches"),
                  counted(plan.config.batch.micro, "sequence"), counted(stream.threads, "thread")));
  const EngineArenas& arenas = engine.arenas();
  log.info(format(
      "memory of rank 0: parameters {:.1f} MB, gradients {:.1f}, optimizer {:.1f}, activations {:.1f}, "
      "workspace {:.1f}",
      static_cast<double>(arenas.parameters.capacity()) / 1e6,
      static_cast<double>(arenas.gradients.capacity()) / 1e6,
      static_cast<double>(arenas.optimizer.capacity()) / 1e6,
      static_cast<double>(arenas.activations.capacity()) / 1e6,
      static_cast<double>(arenas.workspace.capacity()) / 1e6));
}

// What the process has taken beyond its start, beside what was planned for its rank. Ranks that are threads
// take theirs of one process.
void log_memory(const RankEngine& engine, const RankContext& rank, std::size_t level, Log& log) {
  if (rank.ranks_in_process > 1) return;
  log.info(
      format("memory: {:.1f} MB in arenas and at most {:.1f} MB for exchange; the process grew by {:.1f} MB",
             static_cast<double>(engine.arenas().planned_bytes()) / 1e6,
             static_cast<double>(engine.mesh().world().exchange_bytes()) / 1e6,
             static_cast<double>(peak_resident_bytes() - level) / 1e6));
}

// What fails on the way tells its step.
template <typename Work>
auto named_with(std::int64_t step, Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const AgreedError&) {
    throw;
  } catch (const Error& error) {
    const std::string place = format("step {}", step);
    const std::string what = error.what();
    const bool is_told = what.find(place) != std::string::npos || what.starts_with("rank ");
    throw Error(error.kind(), is_told ? what : place + ": " + what);
  }
}

// One run's loop, with what it needs at hand.
class Loop {
 public:
  Loop(const RunPlan& plan, RankEngine& engine, const MicroBatchLoader& train_data,
       const Evaluator* evaluator, Checkpointer& checkpointer, StragglerWatch& stragglers,
       StepReporter* reporter, StepTracer& tracer)
      : plan_(plan),
        engine_(engine),
        data_(train_data),
        evaluator_(evaluator),
        checkpointer_(checkpointer),
        stragglers_(stragglers),
        reporter_(reporter),
        tracer_(tracer) {}

  // `is_evaluation_left`: of the last step that was done, as its run was stopped before.
  void run(std::int64_t steps_done, bool is_evaluation_left) {
    const std::int64_t last = plan_.config.run.steps;
    if (steps_done < last && anyone_was_asked_to_stop()) save_and_stop(steps_done);
    if (reporter_ != nullptr) reporter_->start_clock(steps_done);
    if (is_evaluation_left) evaluate(steps_done);
    stragglers_.start();
    RankStatus& status = engine_.mesh().world().status();
    for (std::int64_t step = steps_done + 1; step <= last; ++step) {
      status.enter(RunPhase::step, step);
      bool stop = named_with(step, [&] { return train_step(step); });
      look_for_stragglers(step, steps_done);
      if (is_compared(step)) compare_replicas(step);
      if (checkpointer_.is_due(step)) checkpointer_.save(step);
      if (stop && step < last) save_and_stop(step);
      if (is_evaluated(step)) evaluate(step);
    }
    checkpointer_.finish();
  }

  bool is_evaluated(std::int64_t step) const {
    const std::int64_t every = plan_.config.eval.every;
    return evaluator_ != nullptr && every > 0 && step > 0 &&
           (step % every == 0 || step == plan_.config.run.steps);
  }

 private:
  // Between steps; during one the step's sums tell.
  bool anyone_was_asked_to_stop() { return largest(stop_requested() ? 1 : 0, engine_.mesh().world()) > 0; }

  void look_for_stragglers(std::int64_t step, std::int64_t steps_before) {
    const std::int64_t every = plan_.config.log.every;
    if (every > 0 && step % every == 0) stragglers_.look(step, std::min(every, step - steps_before));
  }

  // Every so many steps, and before what would be saved.
  bool is_compared(std::int64_t step) const {
    const std::int64_t every = plan_.config.run.check_replicas_every;
    return every > 0 && (step % every == 0 || checkpointer_.is_due(step));
  }

  void compare_replicas(std::int64_t step) {
    engine_.mesh().world().status().act("comparing replicas", -1);
    if (const std::string fault = find_replica_fault(plan_, engine_); !fault.empty())
      throw AgreedError(ErrorKind::runtime,
                        format("step {}: {}; go on from a checkpoint of before", step, fault));
  }

  [[noreturn]] void save_and_stop(std::int64_t step) {
    checkpointer_.save_now(step);
    const bool goes_on = plan_.config.checkpoint.resume == "auto";
    fail(ErrorKind::stopped, "step {}: stopped by a signal; saved in {}: {} goes on from there", step,
         checkpointer_.path_of(step), goes_on ? "the same command" : "the same command with --resume auto");
  }

  bool train_step(std::int64_t step) {
    const std::int64_t batch = plan_.config.batch.global;
    StepInput input;
    input.step = step;
    input.first_ordinal = (step - 1) * batch;
    input.num_predicted = data_.count_predicted(input.first_ordinal, batch);
    input.lr = learning_rate(plan_.config.optimizer, plan_.config.run.steps, step);
    input.votes = votes_;
    const bool is_traced = tracer_.is_traced(step);
    if (is_traced) tracer_.begin();
    const StepOutcome outcome = take_step(input);
    if (is_traced) write_trace(step);
    if (outcome.save_part_done) checkpointer_.advance();
    const double pause = checkpointer_.take_pause();
    if (reporter_ != nullptr) reporter_->step({step, outcome.loss, input.lr, outcome.grad_norm, pause});
    return outcome.stop;
  }

  // A checkpoint of before is still worth its commit.
  StepOutcome take_step(const StepInput& input) {
    try {
      return engine_.train_step(input, load_);
    } catch (const RefusedStep&) {
      checkpointer_.finish();
      throw;
    }
  }

  void write_trace(std::int64_t step) {
    const double begin = seconds_now();
    tracer_.end(step);
    if (reporter_ != nullptr) reporter_->leave_out(seconds_now() - begin);
  }

  // Where a rank was asked to stop, after a batch: whoever goes on from there evaluates anew.
  void evaluate(std::int64_t step) {
    RankStatus& status = engine_.mesh().world().status();
    status.enter(RunPhase::evaluation, step);
    stragglers_.pause();
    const double begin = seconds_now() - checkpointer_.pause();
    const Evaluation done = named_with(step, [&] {
      return evaluator_->evaluate(engine_, votes_, [&] {
        checkpointer_.advance();
        status.enter(RunPhase::evaluation, step);
      });
    });
    stragglers_.go_on();
    if (done.is_complete && reporter_ != nullptr)
      reporter_->evaluation(step, done.loss, seconds_now() - checkpointer_.pause() - begin);
    if (done.stop && (!done.is_complete || step < plan_.config.run.steps)) save_and_stop(step);
  }

  const RunPlan& plan_;
  RankEngine& engine_;
  const MicroBatchLoader& data_;
  const Evaluator* evaluator_;
  Checkpointer& checkpointer_;
  StragglerWatch& stragglers_;
  StepReporter* reporter_;
  StepTracer& tracer_;
  std::function<StepVotes()> votes_ = [this] {
    return StepVotes{stop_requested(), checkpointer_.is_part_done()};
  };
  LoadMicroBatch load_ = [this](const MicroBatch& into, std::int64_t first) { data_.load(into, first); };
};

// Waits until rank 0 has done what only it does; a fault of it ends all.
template <typename Make>
auto on_first_rank(const RankContext& rank, Make make) -> decltype(make()) {
  auto made = rank.rank == 0 ? make() : decltype(make()){};
  rank.world->barrier();
  return made;
}

// Samples are drawn from the sources of a blend by their weights.
std::uint64_t blend_hash(const std::vector<DataSource>& sources, std::uint64_t fingerprint) {
  for (const DataSource& source : sources)
    fingerprint = hash64(&source.weight, sizeof source.weight, fingerprint);
  return fingerprint;
}

// The step whose checkpoint lies among the run's own already; -1: none, and what lies there is of another
// history.
std::int64_t own_step(const StartPoint& start) {
  return start.is_resumed && start.is_own ? start.step : -1;
}

// From here on there is something of this run on the disk.
void open_folder(RunFolder& folder, const RunConfig& config, const StartPoint& start, FileSystem& files,
                 Log& log) {
  const std::string root = checkpoint_root(config);
  const std::string yaml = dump_config(config);
  if (own_step(start) >= 0 && folder.is_of(start.config))
    folder.go_on(yaml, start.step);
  else
    folder.begin(yaml);
  refuse_where_it_fails(root, "checkpoint.dir", [&] {
    remove_debris(files, root, [&](const std::string& line) { log.warn(line); });
    move_later_checkpoints(files, root, own_step(start));
  });
}

}  // namespace

void train(const RunConfig& config, RankContext& rank, Log& log, std::unique_ptr<RunFolder> taken) {
  rank.world->set_deadline(longest_silence(config.run.watchdog_s));
  rank.world->status().enter(RunPhase::data, 0);
  require_same("the config", hash64(dump_config(config)), rank);
  refuse_unsupported(config);
  // Before the plan, which is as large as a batch has micro-batches: the data are known to fill one.
  const MicroBatchLoader train_data(loader_options(config, config.data.train, true));
  require_same("data.train", train_data.fingerprint(), rank);
  std::optional<Evaluator> evaluator;
  if (!config.data.valid.empty()) {
    auto valid_data = std::make_unique<MicroBatchLoader>(loader_options(config, config.data.valid, false));
    require_same("data.valid", valid_data->fingerprint(), rank);
    evaluator.emplace(config, std::move(valid_data));
  }
  const std::shared_ptr<PlannedEngine> planned = plan_engine(config, rank);
  const RunPlan& plan = planned->plan;
  RankEngine& engine = planned->engine;
  rank.world->barrier();  // nothing is written before every rank has found its input and its memory

  FileSystem& files = posix_file_system();
  if (rank.rank == 0) {
    if (!taken) taken = std::make_unique<RunFolder>(config.run.dir);
    taken->also_lock(checkpoint_root(config));  // before anyone looks what is in there
  }
  const DataIdentity data{blend_hash(config.data.train, train_data.fingerprint()), train_data.num_samples()};
  // A signal saves whatever `every` is.
  require_writable(files, checkpoint_root(config), config.place_of("checkpoint.dir") + ": checkpoint.dir",
                   *rank.world);
  const StartPoint start = find_start(plan, engine, files, data, rank);
  const auto folder = on_first_rank(rank, [&] {
    open_folder(*taken, config, start, files, log);
    return std::move(taken);
  });
  if (folder) log.also_to(folder->path("log.txt"));
  for (const std::string& line : start.told) log.info(line);
  const std::int64_t memory =
      largest(static_cast<std::int64_t>(engine.arenas().planned_bytes()), *rank.world);
  std::unique_ptr<StepReporter> reporter;
  if (folder) {
    log_start(plan, engine, planned->stream, log);
    reporter = std::make_unique<StepReporter>(plan, *folder, log, memory);
  }
  StepTracer tracer(config, engine, folder.get(), log);
  Checkpointer checkpointer(plan, engine, files, data, log, own_step(start));
  StragglerWatch stragglers(config.log.straggler_factor, planned->stream.threads, rank, log);
  Loop loop(plan, engine, train_data, evaluator ? &*evaluator : nullptr, checkpointer, stragglers,
            reporter.get(), tracer);
  const bool is_left =
      start.is_resumed && loop.is_evaluated(start.step) && folder && !folder->is_evaluated(start.step);
  loop.run(start.step, largest(is_left ? 1 : 0, *rank.world) > 0);
  if (folder) log_memory(engine, rank, planned->level, log);
  rank.world->status().enter(RunPhase::sampling, config.run.steps);
  if (config.eval.sample_tokens > 0) {
    const std::string text = generate(plan, engine);
    if (folder) log.info("sample:\n" + text);
  }
  if (folder)
    log.info(format("done: {}; results are in {}", counted(config.run.steps, "step"), config.run.dir));
}

}  // namespace hpt
