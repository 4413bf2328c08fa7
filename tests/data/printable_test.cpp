#include "data/printable.h"

#include <catch2/catch.hpp>

using namespace hpt;

TEST_CASE("visible text passes and everything that could steer a terminal is escaped") {
  CHECK(printable("Abc ~ 1", Newlines::escaped) == "Abc ~ 1");
  CHECK(printable("gr\u00fc\u00df \u4e2d \U0001f600", Newlines::escaped) ==
        "gr\u00fc\u00df \u4e2d \U0001f600");
  CHECK(printable("a\nb", Newlines::kept) == "a\nb");
  CHECK(printable("a\nb", Newlines::escaped) == "a\\x0ab");
  CHECK(printable("\x1b[31m\r\t\x7f", Newlines::kept) == "\\x1b[31m\\x0d\\x09\\x7f");
  CHECK(printable(std::string_view("\0", 1), Newlines::kept) == "\\x00");
  CHECK(printable("a\\x41", Newlines::kept) == "a\\\\x41");
  CHECK(printable("\u009b31m", Newlines::kept) == "\\xc2\\x9b31m");  // C1 control sequence introducer
  CHECK(printable("\u202e", Newlines::kept) == "\\xe2\\x80\\xae");   // right-to-left override
  CHECK(printable("\u2028", Newlines::kept) == "\\xe2\\x80\\xa8");   // line separator
}

TEST_CASE("bytes that are no UTF-8 are escaped one by one") {
  CHECK(printable("\xff", Newlines::kept) == "\\xff");
  CHECK(printable("\xc3", Newlines::kept) == "\\xc3");                    // cut off
  CHECK(printable("\xc3(", Newlines::kept) == "\\xc3(");                  // no continuation
  CHECK(printable("\xc0\x8a", Newlines::kept) == "\\xc0\\x8a");           // overlong newline
  CHECK(printable("\xe0\x80\x8a", Newlines::kept) == "\\xe0\\x80\\x8a");  // overlong
  CHECK(printable("\xe0\x82\xa9", Newlines::kept) == "\\xe0\\x82\\xa9");  // overlong, of a visible sign
  CHECK(printable("\xed\xa0\x80", Newlines::kept) == "\\xed\\xa0\\x80");  // surrogate
  CHECK(printable("\xf4\x90\x80\x80", Newlines::kept) == "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
}
