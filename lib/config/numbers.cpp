#include "config/numbers.h"

#include <array>
#include <charconv>
#include <cmath>

namespace hpt {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::size_t count_digits(std::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && is_digit(text[count])) ++count;
  return count;
}

// Takes a leading sign off; true for minus.
bool take_sign(std::string_view& text) {
  if (text.empty() || (text[0] != '+' && text[0] != '-')) return false;
  const bool negative = text[0] == '-';
  text.remove_prefix(1);
  return negative;
}

std::optional<WholeNumber> factor_of(std::string_view suffix) {
  constexpr std::string_view kLetters = "kMGT";
  if (suffix.empty()) return 1;
  std::size_t power = kLetters.find(suffix[0]);
  if (suffix == "Ki") power = 0;
  const bool binary = suffix.size() == 2 && suffix[1] == 'i' && suffix[0] != 'k';
  if (power == std::string_view::npos || (suffix.size() != 1 && !binary)) return std::nullopt;
  WholeNumber factor = 1;
  for (std::size_t i = 0; i <= power; ++i) factor *= binary ? 1024 : 1000;
  return factor;
}

constexpr WholeNumber kLargest = WholeNumber{1'000'000'000'000'000} * 1'000'000'000'000'000;

}  // namespace

std::optional<WholeNumber> read_whole(std::string_view text) {
  const bool negative = take_sign(text);
  const std::size_t num_digits = count_digits(text);
  const std::optional<WholeNumber> factor = factor_of(text.substr(num_digits));
  if (num_digits == 0 || !factor) return std::nullopt;
  WholeNumber value = 0;
  for (char c : text.substr(0, num_digits)) {
    value = value * 10 + (c - '0');
    if (value > kLargest) value = kLargest;
  }
  value = value > kLargest / *factor ? kLargest : value * *factor;
  return negative ? -value : value;
}

RealRead read_real(std::string_view text) {
  const bool negative = take_sign(text);
  const std::string_view digits = text;
  std::size_t num_digits = count_digits(text);
  text.remove_prefix(num_digits);
  if (!text.empty() && text[0] == '.') {
    const std::size_t after_point = count_digits(text.substr(1));
    num_digits += after_point;
    text.remove_prefix(1 + after_point);
  }
  if (num_digits == 0) return {};
  if (!text.empty() && (text[0] == 'e' || text[0] == 'E')) {
    text.remove_prefix(1);
    take_sign(text);
    const std::size_t in_exponent = count_digits(text);
    if (in_exponent == 0) return {};
    text.remove_prefix(in_exponent);
  }
  if (!text.empty()) return {};
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value)) {
    return {RealRead::Outcome::unrepresentable, 0};
  }
  return {RealRead::Outcome::ok, negative ? -value : value};
}

std::string shortest_text(double value) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end};
}

}  // namespace hpt
