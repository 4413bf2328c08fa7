#include "config/numbers.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "core/counter_rng.h"
#include "core/format.h"

namespace hpt {
namespace {

std::int64_t whole(const char* text) {
  const auto value = read_whole(text);
  REQUIRE(value.has_value());
  return static_cast<std::int64_t>(*value);
}

TEST_CASE("whole numbers are decimal, with leading zeros, a sign and a size suffix") {
  CHECK(whole("0") == 0);
  CHECK(whole("4096") == 4096);
  CHECK(whole("010") == 10);
  CHECK(whole("0009") == 9);
  CHECK(whole("-7") == -7);
  CHECK(whole("+7") == 7);
  CHECK(whole("-0") == 0);
  CHECK(whole("4k") == 4000);
  CHECK(whole("4Ki") == 4096);
  CHECK(whole("16M") == 16'000'000);
  CHECK(whole("16Mi") == 16 * 1048576);
  CHECK(whole("2G") == 2'000'000'000);
  CHECK(whole("2Gi") == 2147483648);
  CHECK(whole("3T") == 3'000'000'000'000);
  CHECK(whole("1Ti") == 1099511627776);
}

TEST_CASE("anything else is no whole number") {
  for (const char* text : {"",    "-",   "+",   "k",   "Ki",  "4K",   "4ki",  "4kk", "4Kib",  "4 k",
                           " 4",  "4 ",  "4.0", "4.",  "1e3", "0x10", "0o10", "0b1", "1_000", "1,000",
                           "--4", "+-4", "4-",  "inf", "nan", "four", "4m",   "٤",   "1.5k"}) {
    CAPTURE(text);
    CHECK_FALSE(read_whole(text).has_value());
  }
}

TEST_CASE("a whole number beyond every range stays beyond it and never wraps") {
  const WholeNumber most = std::numeric_limits<std::uint64_t>::max();
  CHECK(*read_whole("18446744073709551615") == most);
  CHECK(*read_whole("18446744073709551616") == most + 1);
  CHECK(*read_whole("99999999999999999999999999999999999999999999999") > most);
  CHECK(*read_whole("-99999999999999999999999999999999999999999999999") < -most);
  CHECK(*read_whole("340282366920938463463374607431768211456") > most);
  CHECK(*read_whole("99999999999999999999999999999999Ti") > most);
  CHECK(*read_whole("18446744073709551615Ti") > most);
}

double real(const char* text) {
  const RealRead read = read_real(text);
  REQUIRE(read.outcome == RealRead::Outcome::ok);
  return read.value;
}

TEST_CASE("1e-4 is a number in all its spellings") {
  for (const char* text :
       {"1e-4", "1E-4", ".0001", "1e-04", "0.0001", "+1e-4", "1.e-4", "10e-5", "00.0001", "1.0e-4"}) {
    CAPTURE(text);
    CHECK(real(text) == 1e-4);
  }
  CHECK(real("3") == 3);
  CHECK(real("010") == 10);
  CHECK(real("-2.5") == -2.5);
  CHECK(real("1e+3") == 1000);
}

TEST_CASE("not a number, infinity, hex, suffixes and loose text are no real numbers") {
  for (const char* text :
       {"",         ".",     "-",  "e5",  "1e",  "1e+", ".e1", "nan",   ".nan",  "NaN", "inf", ".inf", "-inf",
        "Infinity", "0x1p3", "1k", "1_0", "1,5", "1 ",  " 1",  "1e5.0", "1.2.3", "1f",  "+-1", "1e--4"}) {
    CAPTURE(text);
    CHECK(read_real(text).outcome == RealRead::Outcome::malformed);
  }
}

TEST_CASE("a number that no finite double holds is told apart from text that is no number") {
  CHECK(read_real("1e400").outcome == RealRead::Outcome::unrepresentable);
  CHECK(read_real("-1e99999999999999999999").outcome == RealRead::Outcome::unrepresentable);
  CHECK(real("1.7976931348623157e308") == std::numeric_limits<double>::max());
  CHECK(real("5e-324") == std::numeric_limits<double>::denorm_min());
}

TEST_CASE("the shortest text of any double reads back as the same bits") {
  const CounterRng rng(11, RngPurpose::test);
  int tried = 0;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const double value = std::bit_cast<double>(rng.bits64(i));
    if (!std::isfinite(value)) continue;
    ++tried;
    const RealRead read = read_real(shortest_text(value));
    REQUIRE(read.outcome == RealRead::Outcome::ok);
    REQUIRE(std::bit_cast<std::uint64_t>(read.value) == std::bit_cast<std::uint64_t>(value));
  }
  CHECK(tried > 19'000);
  CHECK(shortest_text(0.1) == "0.1");
}

}  // namespace
}  // namespace hpt
