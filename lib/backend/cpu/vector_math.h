// exp for loops that the compiler vectorises: no branch, no table, no call.
//
// exp(x) = 2^n exp(r) with n = round(x / ln 2), |r| <= ln(2) / 2, and exp(r) by its Taylor polynomial, of
// degree 7 in fp32 and 13 in fp64. 2^n is made of two factors, so that results fade through the subnormal
// numbers to 0 and reach infinity where they should. Relative error below 2e-7 in fp32 and 5e-16 in fp64 for
// normal results; exp(NaN) = NaN, exp(-inf) = 0, exp(inf) = inf.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace hpt::cpu {

template <typename T>
struct ExpTraits;
template <>
struct ExpTraits<float> {
  using Bits = std::uint32_t;
  static constexpr float kLowest = -104.0F;   // exp rounds to 0 from here on
  static constexpr float kHighest = 89.0F;    // ... to infinity
  static constexpr float kRound = 0x1.8p23F;  // adding it rounds to an integer, kept in the low bits
  static constexpr float kLn2High = 0x1.62e4p-1F;
  static constexpr float kLn2Low = 0x1.7f7d1cp-20F;
  static constexpr int kMantissa = 23;
  static constexpr Bits kBias = 127;
  static constexpr int kDegree = 7;
};
template <>
struct ExpTraits<double> {
  using Bits = std::uint64_t;
  static constexpr double kLowest = -746.0;
  static constexpr double kHighest = 710.0;
  static constexpr double kRound = 0x1.8p52;
  static constexpr double kLn2High = 0x1.62e42feep-1;
  static constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr int kMantissa = 52;
  static constexpr Bits kBias = 1023;
  static constexpr int kDegree = 13;
};

// a b + c, rounded once where the machine has an instruction for it.
template <typename T>
inline T multiply_add(T a, T b, T c) {
#ifdef __FMA__
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

// 1 / power! + r / (power + 1)! + ...: the tail of exp's series from `power` on, over r^power.
template <typename T, int kPower>
inline T exp_series(T r) {
  constexpr T kCoefficient = [] {
    long double factorial = 1;
    for (int i = 2; i <= kPower; ++i) factorial *= i;
    return static_cast<T>(1 / factorial);
  }();
  if constexpr (kPower == ExpTraits<T>::kDegree)
    return kCoefficient;
  else
    return multiply_add(exp_series<T, kPower + 1>(r), r, kCoefficient);
}

template <typename T>
inline T vector_exp(T x) {
  using Traits = ExpTraits<T>;
  using Bits = typename Traits::Bits;
  T clamped = x < Traits::kLowest ? Traits::kLowest : x;  // written so that NaN stays
  clamped = clamped > Traits::kHighest ? Traits::kHighest : clamped;
  const T shifted = multiply_add(clamped, T(1.44269504088896340736), Traits::kRound);
  const T n = shifted - Traits::kRound;
  const T r = multiply_add(-n, Traits::kLn2Low, multiply_add(-n, Traits::kLn2High, clamped));
  // The low bits of `shifted` hold n (anything for NaN, hence unsigned); twice the bias makes it positive.
  const Bits exponent =
      std::bit_cast<Bits>(shifted) - std::bit_cast<Bits>(Traits::kRound) + 2 * Traits::kBias;
  const Bits half = exponent >> 1;
  const T factor1 = std::bit_cast<T>(half << Traits::kMantissa);
  const T factor2 = std::bit_cast<T>((exponent - half) << Traits::kMantissa);
  return exp_series<T, 0>(r) * factor1 * factor2;
}

// 1 / (1 + exp(-x)), with a small relative error on both sides.
template <typename T>
inline T vector_sigmoid(T x) {
  return T{1} / (T{1} + vector_exp(-x));
}

}  // namespace hpt::cpu
