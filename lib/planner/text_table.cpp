#include "planner/text_table.h"

#include <algorithm>

#include "core/error.h"

namespace hpt {

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string cut_in_the_middle(const std::vector<std::string>& lines, std::size_t most) {
  const std::size_t half = most / 2;
  const bool is_cut = lines.size() > most;
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool is_left_out = is_cut && i >= half && i + half < lines.size();
    if (!is_left_out) text += lines[i];
    if (is_left_out && i == half) text += format("  ... {} more\n", lines.size() - 2 * half);
  }
  return text;
}

TextTable::TextTable(const std::vector<std::pair<std::string, Side>>& columns) {
  std::vector<std::string> names;
  for (const auto& [name, side] : columns) {
    names.push_back(name);
    sides_.push_back(side);
  }
  rows_.push_back(std::move(names));
}

void TextTable::add(std::vector<std::string> row) {
  HPT_REQUIRE(row.size() == sides_.size());
  rows_.push_back(std::move(row));
}

std::string TextTable::text(std::size_t most) const {
  std::vector<std::string> lines(rows_.size());
  for (std::size_t column = 0; column < sides_.size(); ++column) {
    std::size_t width = 0;
    for (const auto& row : rows_) width = std::max(width, row[column].size());
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const std::string& cell = rows_[row][column];
      const std::string space(width - cell.size(), ' ');
      lines[row] += "  " + (sides_[column] == Side::left ? cell + space : space + cell);
    }
  }
  for (std::string& line : lines) line.replace(line.find_last_not_of(' ') + 1, std::string::npos, "\n");
  const std::string names = lines.front();
  lines.erase(lines.begin());
  return names + cut_in_the_middle(lines, most);
}

}  // namespace hpt
