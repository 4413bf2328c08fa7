#include "comm/launch/launcher.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "core/error.h"

namespace hpt {
namespace {

struct Variables {
  const char* launcher;  // as messages call it
  const char* rank;
  const char* size;
};

int number_of(const char* name, const char* text) {
  int number = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  if (error != std::errc{} || stop != end || number < 0)
    fail(ErrorKind::usage, "{}: the launcher says '{}', which is no number of a rank", name, text);
  return number;
}

Launcher read(const Variables& names, const Variable& variable) {
  Launcher found;
  found.rank = number_of(names.rank, variable(names.rank));
  const char* size = variable(names.size);
  found.size = size == nullptr ? 0 : number_of(names.size, size);
  if (size != nullptr && found.rank >= found.size)
    fail(ErrorKind::usage, "{}: rank {} is not one of the launcher's {} ({})", names.rank, found.rank,
         counted(found.size, "rank"), names.size);
  found.command = size == nullptr ? names.launcher : format("{} -n {}", names.launcher, found.size);
  return found;
}

// What the launcher calls this start of the program. Open MPI draws the name from a few numbers only; where
// its server on this host listens is nobody else's as long as it lives.
std::string job_of(const Variable& variable) {
  const auto text = [&](const char* name) -> std::string {
    const char* value = variable(name);
    return value == nullptr ? "" : value;
  };
  if (const std::string space = text("PMIX_NAMESPACE"); !space.empty())
    return "pmix " + space + " " + text("PMIX_SERVER_URI2");
  if (const std::string step = text("SLURM_STEP_ID"); !step.empty())
    return "slurm " + text("SLURM_JOB_ID") + "." + step;
  return "";
}

Launcher find_rank(const Variable& variable) {
  const bool slurm_step = variable("SLURM_STEP_ID") != nullptr && variable("SLURM_PROCID") != nullptr;
  if (variable("OMPI_COMM_WORLD_RANK") != nullptr)
    return read({"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, variable);
  if (variable("PMIX_RANK") != nullptr)
    return slurm_step ? read({"srun", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"}, variable)
                      : read({"PMIx launcher", "PMIX_RANK", "PMIX_SIZE"}, variable);
  const bool pmi = variable("PMI_RANK") != nullptr;
  if (!pmi && !slurm_step) return {};
  Launcher found = slurm_step ? read({"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}, variable)
                              : read({"mpiexec", "PMI_RANK", "PMI_SIZE"}, variable);
  if (slurm_step) found.no_peers = "its ranks cannot find each other without PMIx (try srun --mpi=pmix)";
  return found;
}

}  // namespace

Launcher find_launcher(const Variable& variable) {
  Launcher found = find_rank(variable);
  found.job = job_of(variable);
  if (const char* here = variable("OMPI_COMM_WORLD_LOCAL_SIZE"))
    found.ranks_here = number_of("OMPI_COMM_WORLD_LOCAL_SIZE", here);
  return found;
}

Launcher launcher_of_process() {
  return find_launcher([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace hpt
