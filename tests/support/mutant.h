// Mutants of a text: pieces taken out, put in, doubled, moved, replaced by what a reader may stumble over.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "support/draws.h"

namespace hpt::testing {

// One change. `snippets`: what is put in.
inline void mutate(std::string& text, const std::vector<std::string>& snippets, Draws& draws) {
  const std::size_t at = draws.below(text.size() + 1);
  const std::size_t length = std::min(draws.below(20), text.size() - at);
  switch (draws.below(7)) {
    case 0:
      text.erase(at, length);
      break;
    case 1:
      text.insert(at, draws.one_of(snippets));
      break;
    case 2:
      text.replace(at, length, draws.one_of(snippets));
      break;
    case 3:
      text.insert(draws.below(text.size() + 1), text.substr(at, length));
      break;
    case 4:
      if (at < text.size()) text[at] = static_cast<char>(draws.below(256));
      break;
    case 5:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ 1 << draws.below(8));
      break;
    default: {  // another digit, where there is one
      const std::size_t digit = text.find_first_of("0123456789", at);
      if (digit != std::string::npos) text[digit] = static_cast<char>('0' + draws.below(10));
    }
  }
}

}  // namespace hpt::testing
