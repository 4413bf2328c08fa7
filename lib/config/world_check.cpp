#include "config/world_check.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "config/numbers.h"
#include "config/schema.h"
#include "config/text.h"
#include "core/format.h"

namespace hpt {
namespace {

struct Degrees {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;
};

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> found;
  for (std::int64_t d = 1; d <= n; ++d) {
    if (n % d == 0) found.push_back(d);
  }
  return found;
}

// Would this model train in this layout? The same rules as cross_checks.cpp's for the three degrees.
bool suits(const RunConfig& c, const Degrees& d) {
  const ModelSection& m = c.model;
  const std::int64_t ffn = m.ffn_hidden == 0 ? d.tp : m.ffn_hidden;
  const bool splits =
      m.heads % d.tp == 0 && ffn % d.tp == 0 && (m.kv_heads % d.tp == 0 || d.tp % m.kv_heads == 0);
  const std::int64_t stages = d.pp * c.parallel.virtual_stages;
  const bool stages_fit =
      m.layers >= stages &&
      (c.parallel.stages.empty() || c.parallel.stages.size() == static_cast<std::size_t>(stages));
  const std::int64_t sequences = c.batch.micro * d.dp;
  const bool batch_fits = c.batch.global % sequences == 0 && c.batch.global / sequences <= kMaxMicroBatches;
  return splits && stages_fit && batch_fits;
}

// How far from what was asked for, as factors.
double distance(const RunConfig& c, const Degrees& d) {
  const auto factor = [](std::int64_t a, std::int64_t b) {
    return std::abs(std::log(static_cast<double>(a) / static_cast<double>(b)));
  };
  const std::int64_t dp = c.parallel.dp == 0 ? d.dp : c.parallel.dp;
  return factor(d.tp, c.parallel.tp) + factor(d.pp, c.parallel.pp) + factor(d.dp, dp);
}

// " (try ...)" with the nearest layouts of `world` ranks that suit the model.
std::string fitting_layouts(const RunConfig& c, std::int64_t world) {
  constexpr std::size_t kMostListed = 4;
  std::vector<Degrees> fitting;
  if (world % c.parallel.cp == 0) {
    for (std::int64_t tp : divisors(world / c.parallel.cp)) {
      for (std::int64_t pp : divisors(world / c.parallel.cp / tp)) {
        const Degrees degrees{tp, pp, world / c.parallel.cp / tp / pp};
        if (suits(c, degrees)) fitting.push_back(degrees);
      }
    }
  }
  if (fitting.empty()) return format(" (no layout of {} fits this model and batch)", counted(world, "rank"));
  std::stable_sort(fitting.begin(), fitting.end(),
                   [&](const Degrees& a, const Degrees& b) { return distance(c, a) < distance(c, b); });
  if (fitting.size() > kMostListed) fitting.resize(kMostListed);
  std::vector<std::string> texts;
  texts.reserve(fitting.size());
  for (const Degrees& d : fitting) texts.push_back(format("tp {} pp {} dp {}", d.tp, d.pp, d.dp));
  return format(" (these would fit: {})", joined(texts));
}

}  // namespace

std::string resolve_world(RunConfig& config, const ConfigRequest& request, bool model_is_valid) {
  ParallelSection& p = config.parallel;
  const WholeNumber world = request.world_size;
  const WholeNumber replica = WholeNumber{p.tp} * p.cp * p.pp;
  const bool is_auto = p.dp == 0;
  if (is_auto && world == 0) p.dp = 1;
  if (is_auto && world % replica == 0 && world > 0) p.dp = static_cast<int>(world / replica);
  if (world == 0 || replica * p.dp == world) return {};
  const std::string origin =
      request.world_origin.empty() ? format("world of {}", request.world_size) : shown(request.world_origin);
  const std::string hint = model_is_valid ? fitting_layouts(config, request.world_size) : "";
  if (is_auto) {
    return format(
        "{}: parallel.dp: auto finds no whole number, since tp {} * cp {} * pp {} = {} does not divide the "
        "world's {}{}",
        origin, p.tp, p.cp, p.pp, replica, counted(request.world_size, "rank"), hint);
  }
  return format("{}: parallel: tp {} * cp {} * pp {} * dp {} = {}, but the world has {}{}", origin, p.tp,
                p.cp, p.pp, p.dp, counted(replica * p.dp, "rank"), request.world_size, hint);
}

}  // namespace hpt
