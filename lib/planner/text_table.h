// Tables for a terminal: numbers that can be read, columns in line, and long lists cut in the middle.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hpt {

// "1,234,567"
std::string grouped(std::int64_t number);
inline std::string grouped(std::size_t number) {
  return grouped(static_cast<std::int64_t>(number));
}

// All lines, or the first and the last of them with "  ... N more" between, where they are more than `most`
// (an even number). Each line has its end.
std::string cut_in_the_middle(const std::vector<std::string>& lines, std::size_t most);

// Columns as wide as their widest cell, two spaces between them.
class TextTable {
 public:
  enum class Side { left, right };  // where a column's cells stand
  explicit TextTable(const std::vector<std::pair<std::string, Side>>& columns);

  // One cell a column.
  void add(std::vector<std::string> row);
  // The columns' names, then at most `most` rows, cut in the middle.
  std::string text(std::size_t most) const;

 private:
  std::vector<Side> sides_;
  std::vector<std::vector<std::string>> rows_;  // the first: the names
};

}  // namespace hpt
