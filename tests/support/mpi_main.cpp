// The main of a test program under mpirun: every MPI rank runs the same Catch session, and what run_ranks()
// runs goes over the first n of them while the others wait. Rank 0 shows the session; another rank's is shown
// if it alone fails.
#define CATCH_CONFIG_RUNNER
#include <mpi.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "comm/mpi/mpi_ranks.h"
#include "core/clock.h"
#include "support/ranks.h"

namespace hpt::testing {
namespace {

constexpr double kLongestWait = 500;  // for the other processes of the test

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// Waits for all processes without keeping a core; ends the job if one has gone another way.
void meet_all() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  const double start = seconds_now();
  for (int met = 0; MPI_Test(&request, &met, MPI_STATUS_IGNORE), met == 0;) {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    if (seconds_now() - start < kLongestWait) continue;
    std::fprintf(stderr, "process %d: the others did not come to the end of this run_ranks()\n",
                 world_rank());
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
}

std::string to_text(const std::vector<RankFailure>& failures) {
  std::string text;
  for (const RankFailure& failure : failures)
    text += format("{} {} {}\n", failure.rank, static_cast<int>(failure.kind), failure.message) + '\0';
  return text;
}

std::vector<RankFailure> from_text(const std::string& text) {
  std::vector<RankFailure> failures;
  for (std::size_t begin = 0; begin < text.size(); begin = text.find('\0', begin) + 1) {
    RankFailure failure;
    int kind = 0;
    int length = 0;
    std::sscanf(text.c_str() + begin, "%d %d %n", &failure.rank, &kind, &length);
    failure.kind = static_cast<ErrorKind>(kind);
    failure.message = text.c_str() + begin + length;
    failure.message.pop_back();
    failures.push_back(failure);
  }
  return failures;
}

// Every process gets what failed in any, by rank.
std::vector<RankFailure> share(const std::vector<RankFailure>& own) {
  meet_all();
  const std::string text = to_text(own);
  int num_processes = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &num_processes);
  std::string all;
  for (int process = 0; process < num_processes; ++process) {
    auto length = static_cast<int>(text.size());
    MPI_Bcast(&length, 1, MPI_INT, process, MPI_COMM_WORLD);
    std::string theirs = process == world_rank() ? text : std::string(static_cast<std::size_t>(length), ' ');
    MPI_Bcast(theirs.data(), length, MPI_CHAR, process, MPI_COMM_WORLD);
    all += theirs;
  }
  return from_text(all);
}

std::vector<RankFailure> run_over_mpi(int ranks_per_host, const RankRun& run, const RankBody& body) {
  const bool takes_part = world_rank() < run.num_ranks;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, 0, &comm);
  std::unique_ptr<ProcessGroup> world;
  std::vector<RankFailure> failures;
  if (takes_part) {
    MpiWorldOptions options;
    options.deadline_s = run.deadline_s;
    options.ranks_per_host = ranks_per_host;
    world = make_mpi_world_over(comm, options);
    MPI_Comm_free(&comm);
    failures = run_one_rank(*world, body);
  }
  return share(failures);
}

// Sessions of ranks other than 0 write here.
struct HiddenOutput {
  std::FILE* file = std::tmpfile();
  std::string path = format("/proc/self/fd/{}", fileno(file));

  void show(int rank) {
    std::fprintf(stderr, "process %d of the test failed:\n", rank);
    std::rewind(file);
    for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) std::fputc(c, stderr);
  }
};

// The number of failed assertions; 0 only if all processes say so.
int agreed_result(int own, HiddenOutput& output) {
  meet_all();
  int of_first = own;
  MPI_Bcast(&of_first, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (own != 0 && of_first == 0) output.show(world_rank());
  int largest = own;
  MPI_Allreduce(&own, &largest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return largest;
}

int run_session(int argc, char** argv) {
  Catch::Session session;
  const int wrong = session.applyCommandLine(argc, argv);
  if (wrong != 0) return wrong;
  HiddenOutput output;
  if (world_rank() != 0) session.configData().outputFilename = output.path;
  int result = 0;
  std::vector<int> hosts = {0};  // as they are
  hosts.insert(hosts.end(), more_ranks_per_host().begin(), more_ranks_per_host().end());
  for (const int ranks_per_host : hosts) {
    if (world_rank() == 0 && ranks_per_host > 0) std::printf("ranks as on hosts of %d\n", ranks_per_host);
    use_rank_runner(
        [=](const RankRun& run, const RankBody& body) { return run_over_mpi(ranks_per_host, run, body); });
    result = agreed_result(session.run(), output);
    if (result != 0) break;
  }
  return result;
}

}  // namespace
}  // namespace hpt::testing

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  const int result = hpt::testing::run_session(argc, argv);
  MPI_Finalize();
  return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
