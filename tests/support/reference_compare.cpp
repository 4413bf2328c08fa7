#include "support/reference_compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return infinity;
  double result = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (!std::isfinite(difference)) return infinity;
    result = std::max(result, difference);
  }
  return result;
}

}  // namespace

Gap gap(const Parameters& a, const Parameters& b) {
  for (const auto& [name, values] : a)
    if (!b.contains(name)) return {infinity, name};
  double floor = 0;
  for (const auto& [name, values] : b) floor = std::max(floor, 1e-3 * largest(values));
  Gap worst;
  for (const auto& [name, values] : b) {
    const auto found = a.find(name);
    if (found == a.end()) return {infinity, name};
    const double difference = largest_difference(found->second, values);
    const double error = difference == 0 ? 0 : difference / std::max(largest(values), floor);
    if (!(error <= worst.error)) worst = {error, name};
  }
  return worst;
}

double gap(double a, double b) {
  if (a == b) return 0;
  const double error = std::abs(a - b) / std::abs(b);
  return std::isfinite(error) ? error : infinity;
}

}  // namespace reference
