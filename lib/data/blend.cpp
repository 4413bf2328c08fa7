#include "data/blend.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace hpt {
namespace {

constexpr std::int64_t kMaxPeriod = 1'000'000;

std::vector<std::int64_t> reduced(std::vector<std::int64_t> counts) {
  std::int64_t divisor = 0;
  for (const std::int64_t count : counts) divisor = std::gcd(divisor, count);
  if (divisor > 1)
    for (std::int64_t& count : counts) count /= divisor;
  return counts;
}

// The weights as whole numbers without a common divisor, after multiplying by `scale`; empty where one is not
// whole (within rounding) or their sum is too long for a pattern.
std::vector<std::int64_t> whole_numbers(const std::vector<double>& weights, double scale) {
  std::vector<std::int64_t> counts;
  for (const double weight : weights) {
    const double scaled = weight * scale;
    const double rounded = std::round(scaled);
    if (rounded < 1 || rounded > 1e12 || std::abs(scaled - rounded) > 1e-9 * scaled) return {};
    counts.push_back(static_cast<std::int64_t>(rounded));
  }
  counts = reduced(std::move(counts));
  const std::int64_t period = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (period > kMaxPeriod) return {};
  return counts;
}

std::vector<std::int64_t> counts_of(const std::vector<double>& weights) {
  constexpr double kScales[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
  for (const double scale : kScales)
    if (auto counts = whole_numbers(weights, scale); !counts.empty()) return counts;

  // Divided by the largest first: the sum of huge weights may not be finite.
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (const double weight : weights) sum += weight / largest;
  std::vector<std::int64_t> counts;
  for (const double weight : weights) {
    const double share = weight / largest / sum;
    counts.push_back(std::max<std::int64_t>(1, std::llround(share * static_cast<double>(kMaxPeriod))));
  }
  return reduced(std::move(counts));
}

// Tijdeman's rule. With shares r and S = 2 (k - 1), the sources that may come next are those whose deficit
// (n + 1) r - taken has reached 1/S; of these, the one whose deficit reaches 1 - 1/S first. Multiplied by the
// period P and by S, everything is a whole number.
class Apportioner {
 public:
  explicit Apportioner(const std::vector<std::int64_t>& counts)
      : counts_(counts),
        taken_(counts.size(), 0),
        period_(std::accumulate(counts.begin(), counts.end(), std::int64_t{0})),
        twice_others_(std::max<std::int64_t>(1, 2 * static_cast<std::int64_t>(counts.size()) - 2)) {}

  std::int64_t period() const { return period_; }

  std::size_t next(std::int64_t n) {
    std::size_t best = counts_.size();
    double best_slack = 0;
    for (std::size_t source = 0; source < counts_.size(); ++source) {
      const std::int64_t deficit = (n + 1) * counts_[source] - taken_[source] * period_;  // times P
      if (counts_.size() > 1 && deficit * twice_others_ < period_) continue;
      const auto slack = static_cast<double>((twice_others_ - 1) * period_ - deficit * twice_others_);
      const double deadline = slack / static_cast<double>(counts_[source]);
      if (best < counts_.size() && deadline >= best_slack) continue;
      best = source;
      best_slack = deadline;
    }
    HPT_REQUIRE(best < counts_.size());
    ++taken_[best];
    return best;
  }

 private:
  const std::vector<std::int64_t>& counts_;
  std::vector<std::int64_t> taken_;
  std::int64_t period_;
  std::int64_t twice_others_;
};

}  // namespace

Blend::Blend(const std::vector<double>& weights) : counts_(counts_of(weights)) {
  Apportioner apportioner(counts_);
  std::vector<std::uint32_t> before(counts_.size(), 0);
  pattern_.reserve(static_cast<std::size_t>(apportioner.period()));
  for (std::int64_t n = 0; n < apportioner.period(); ++n) {
    const std::size_t source = apportioner.next(n);
    pattern_.push_back({static_cast<std::uint32_t>(source), before[source]++});
  }
}

BlendEntry Blend::at(std::int64_t ordinal) const {
  const Entry& entry = pattern_[static_cast<std::size_t>(ordinal % period())];
  const std::int64_t source = entry.source;
  return {source, ordinal / period() * counts_[entry.source] + entry.index};
}

}  // namespace hpt
