// What kernel tests share: owned arrays seen as tensors, random numbers from fixed seeds, and comparisons.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "backend/backend.h"
#include "core/counter_rng.h"

namespace hpt::test {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <typename T>
struct Array {
  Shape shape;
  std::vector<T> values;

  explicit Array(const Shape& of, T value = T{})
      : shape(of), values(static_cast<std::size_t>(of.num_elements()), value) {}
  Array(const Shape& of, std::vector<T> with) : shape(of), values(std::move(with)) {}

  // Implicit, so that a call reads as the contract does.
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator Tensor() { return {values.data(), DTypeOf<T>::value, shape}; }
  Tensor tensor() { return *this; }
  T& operator[](std::int64_t i) { return values[static_cast<std::size_t>(i)]; }
  const T& operator[](std::int64_t i) const { return values[static_cast<std::size_t>(i)]; }
  std::int64_t size() const { return static_cast<std::int64_t>(values.size()); }
};

// Normal numbers; equal seeds give the same ones, rounded to T.
template <typename T>
Array<T> random_array(const Shape& shape, std::uint64_t seed, double std = 1.0) {
  Array<T> array(shape);
  const CounterRng rng(seed, RngPurpose::test);
  for (std::int64_t i = 0; i < array.size(); ++i)
    array[i] = static_cast<T>(std * rng.normal(static_cast<std::uint64_t>(i)));
  return array;
}

// Integers in [low, high).
template <typename T>
Array<T> random_integers(const Shape& shape, std::uint64_t seed, std::int64_t low, std::int64_t high) {
  Array<T> array(shape);
  const CounterRng rng(seed, RngPurpose::test);
  for (std::int64_t i = 0; i < array.size(); ++i)
    array[i] = static_cast<T>(low + static_cast<std::int64_t>(rng.bits64(static_cast<std::uint64_t>(i)) %
                                                              static_cast<std::uint64_t>(high - low)));
  return array;
}

template <typename T>
Array<double> widened(const Array<T>& x) {
  return {x.shape, std::vector<double>(x.values.begin(), x.values.end())};
}

// max |found - expected| over max |expected|; NaN if anything is NaN. Sizes must agree.
template <typename T>
double relative_error(const Array<T>& found, const Array<double>& expected) {
  if (found.size() != expected.size()) return kInfinity;
  double error = 0.0;
  double largest = std::numeric_limits<double>::min();
  for (std::int64_t i = 0; i < found.size(); ++i) {
    const double difference = std::abs(static_cast<double>(found[i]) - expected[i]);
    if (!(difference <= error)) error = difference;
    if (std::isnan(difference)) return kNan;
    largest = std::max(largest, std::abs(expected[i]));
  }
  return error / largest;
}

template <typename T>
constexpr double kTolerance = sizeof(T) == 4 ? 5e-6 : 1e-13;

// The largest relative error of `gradient` against central differences of objective() by each element of x.
inline double gradient_error(Array<double>& x, const Array<double>& gradient,
                             const std::function<double()>& objective, double step = 1e-5) {
  Array<double> differences(x.shape);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const double kept = x[i];
    x[i] = kept + step;
    const double above = objective();
    x[i] = kept - step;
    const double below = objective();
    x[i] = kept;
    differences[i] = (above - below) / (2 * step);
  }
  return relative_error(gradient, differences);
}

inline double dot(const Array<double>& x, const Array<double>& y) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

template <typename T>
bool has_nan(const Array<T>& x) {
  return std::any_of(x.values.begin(), x.values.end(), [](T value) { return std::isnan(value); });
}

// Bits, so that NaN equals NaN and 0 differs from -0.
template <typename T>
bool same_bits(const Array<T>& x, const Array<T>& y) {
  return x.values.size() == y.values.size() &&
         std::equal(reinterpret_cast<const char*>(x.values.data()),
                    reinterpret_cast<const char*>(x.values.data() + x.values.size()),
                    reinterpret_cast<const char*>(y.values.data()));
}

}  // namespace hpt::test
