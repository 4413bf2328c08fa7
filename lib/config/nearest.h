// Which known word a mistyped one was meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hpt {

// Letters to insert, delete, replace or swap with a neighbour to get from one to the other, in any case.
int edit_distance(std::string_view a, std::string_view b);

// The word with the least distance, the first of equals; "" if there are none.
std::string nearest_word(std::string_view text, const std::vector<std::string>& words);

}  // namespace hpt
