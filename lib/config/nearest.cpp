#include "config/nearest.h"

#include <algorithm>

namespace hpt {
namespace {

// No key is longer; a longer text is as far from all of them as its first letters are.
constexpr std::size_t kCompared = 48;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, kCompared);
  b = b.substr(0, kCompared);
  std::vector<int> before(b.size() + 1);  // rows i - 2, i - 1 and i of the usual table
  std::vector<int> above(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string nearest_word(std::string_view text, const std::vector<std::string>& words) {
  std::string nearest;
  int least = -1;
  for (const std::string& word : words) {
    const int distance = edit_distance(text, word);
    if (least >= 0 && distance >= least) continue;
    least = distance;
    nearest = word;
  }
  return nearest;
}

}  // namespace hpt
