#include "comm/launch/launcher.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "core/error.h"

namespace hpt {
namespace {

struct Variables {
  const char* launcher;
  const char* marker;  // must be set too, where given
  const char* rank;
  const char* size;
};

constexpr std::array<Variables, 3> kLaunchers = {{
    {"mpirun", nullptr, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI launcher", nullptr, "PMI_RANK", "PMI_SIZE"},
    {"srun", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
}};

int number(const char* name, const char* text) {
  int value = 0;
  const std::string_view digits(text);
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (fault != std::errc{} || end != digits.data() + digits.size() || value < 0)
    fail(ErrorKind::usage, "{}: '{}' is not a rank or a number of ranks; the launcher sets it", name, text);
  return value;
}

}  // namespace

std::optional<LauncherPlace> find_launcher() {
  for (const Variables& variables : kLaunchers) {
    const char* rank = std::getenv(variables.rank);
    const char* size = std::getenv(variables.size);
    const bool marked = variables.marker == nullptr || std::getenv(variables.marker) != nullptr;
    if (rank == nullptr || size == nullptr || !marked) continue;
    const LauncherPlace place{variables.launcher, number(variables.rank, rank), number(variables.size, size)};
    if (place.rank >= place.world_size)
      fail(ErrorKind::usage, "{}: rank {} is outside a world of {}", variables.rank, place.rank,
           place.world_size);
    return place;
  }
  return std::nullopt;
}

}  // namespace hpt
