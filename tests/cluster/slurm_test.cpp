// Jobs of a real SLURM with two nodes on this machine, where the scripts that start one are at hand: the
// folder HPT_SLURM_FIXTURE, with start-slurm.sh and stop-slurm.sh. Elsewhere these tests are skipped.
#include <catch2/catch.hpp>

#include "cluster/fixture.h"
#include "e2e/small_run.h"

namespace e2e {
namespace {

using Catch::Matchers::Contains;

// A cluster for the length of a test. Commands run where its variables are set.
class Slurm {
 public:
  Slurm() {
    const Outcome started =
        e2e::run({{"bash", "-c", "bash \"$HPT_SLURM_FIXTURE/start-slurm.sh\" >" + variables()}});
    if (started.exit_code != 0) throw std::runtime_error("start-slurm.sh: " + started.err);
  }
  ~Slurm() {
    e2e::run({{"bash", "-c", "source " + variables() + "; bash \"$HPT_SLURM_FIXTURE/stop-slurm.sh\""}});
  }
  Slurm(const Slurm&) = delete;
  Slurm& operator=(const Slurm&) = delete;

  Outcome run(const SmallRun& run, const std::string& command, double limit_s = 120) const {
    return e2e::run(
        {{"bash", "-c", "source " + variables() + "; " + command}, {}, run.folder().path(), limit_s});
  }

 private:
  std::string variables() const { return folder_ / "variables"; }
  TempFolder folder_;
};

// A batch file as those of scripts/slurm/, on two nodes, which it leaves only when the job is over.
void write_batch(const SmallRun& run, const std::string& settings, const std::string& more = "") {
  write_file(run.folder() / "job.sbatch",
             "#!/usr/bin/env bash\n"
             "#SBATCH --nodes=2 --ntasks-per-node=2 --gpus-per-node=4 --time=5 --signal=USR1@60\n"
             "#SBATCH --requeue --open-mode=append --output=job.out\n" +
                 more +
                 "export HPT_TRAIN=" HPT_BINARY "\nexec " HPT_SOURCE_DIR
                 "/scripts/slurm/train --config run.yaml --set parallel.tp=2 --set parallel.dp=2 " +
                 settings + "\n");
}

// Submits it and waits for the end, or for `until` to hold.
const std::string kSubmit = "job=$(sbatch --parsable job.sbatch); ";
const std::string kWaitForEnd =
    "for _ in $(seq 500); do [ -n \"$(squeue -h -j $job -o %i 2>/dev/null)\" ] || break; sleep 0.2; done; "
    "scontrol show job $job | grep -o 'JobState=[A-Z_]*'; cat job.out";
std::string wait_for_step(int step) {
  return "for _ in $(seq 300); do grep -q '\"step\":" + std::to_string(step) +
         ",' out/metrics.jsonl 2>/dev/null && break; sleep 0.1; done; ";
}

// Slow enough to be stopped in the middle.
const std::string kSlow =
    "--set run.steps=60 --set batch.global=64 --set model.hidden=128 --set eval.every=0 ";

std::vector<double> losses_of_undisturbed(const std::string& extra = "") {
  const SmallRun run;
  const Outcome outcome =
      e2e::run({{"bash", "-c",
                 HPT_BINARY " --config run.yaml --set parallel.tp=2 --set parallel.dp=2 " + kSlow + extra +
                     "--local 4"},
                {},
                run.folder().path()});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return step_values(run.metrics(), "loss");
}

TEST_CASE("srun starts 8 ranks on two nodes, with the losses of 8 threads") {
  if (skipped_without("HPT_SLURM_FIXTURE", "slurmctld")) return;
  const Slurm slurm;
  const SmallRun threads;
  const SmallRun::Settings layout = {"parallel.tp=2", "parallel.pp=2", "parallel.dp=2"};
  REQUIRE(threads.train(Ranks::threads, 8, layout).exit_code == 0);
  for (const std::string gpus : {"--gpus-per-node=4", "--gpus-per-task=1"}) {
    const SmallRun run;
    const Outcome outcome =
        slurm.run(run, "srun -N2 -n8 --ntasks-per-node=4 " + gpus +
                           " " HPT_BINARY
                           " --config run.yaml --set parallel.tp=2 --set parallel.pp=2 --set parallel.dp=2");
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(step_values(run.metrics(), "loss") == step_values(threads.metrics(), "loss"));
  }
}

TEST_CASE(
    "a batch job that is stopped early is saved, requeued, and ends with the losses of one never stopped") {
  if (skipped_without("HPT_SLURM_FIXTURE", "slurmctld")) return;
  // What a step is sent reaches all of srun's ranks, and mpirun's on other nodes than the first.
  const std::string launch = GENERATE("srun --mpi=pmix", "mpirun --quiet --oversubscribe");
  CAPTURE(launch);
  const Slurm slurm;
  const SmallRun run;
  write_batch(run, kSlow, "export HPT_LAUNCH='" + launch + "'\n");
  const Outcome outcome =
      slurm.run(run, kSubmit + wait_for_step(3) + "scancel --signal=USR1 $job; " + kWaitForEnd);
  INFO(outcome.out << outcome.err);
  CHECK_THAT(outcome.out, Contains("JobState=COMPLETED") &&
                              Contains("stopped by a signal; saved in out/checkpoints/") &&
                              Contains("start 2:") && Contains("resumed after step"));
  CHECK(step_values(run.metrics(), "loss") == losses_of_undisturbed());
}

TEST_CASE("a node that goes down brings the job back into the queue, and it goes on from its checkpoint") {
  if (skipped_without("HPT_SLURM_FIXTURE", "slurmctld")) return;
  const Slurm slurm;
  const SmallRun run;
  write_batch(run, kSlow + "--set checkpoint.every=2");
  const Outcome outcome =
      slurm.run(run, kSubmit + wait_for_step(5) +
                         "scontrol update nodename=node2 state=down reason=test; sleep 3; "
                         "scontrol update nodename=node2 state=resume; " +
                         kWaitForEnd);
  INFO(outcome.out << outcome.err);
  CHECK_THAT(outcome.out, Contains("JobState=COMPLETED") && Contains("resumed after step"));
  CHECK(step_values(run.metrics(), "loss") == losses_of_undisturbed("--set checkpoint.every=2 "));
}

}  // namespace
}  // namespace e2e
