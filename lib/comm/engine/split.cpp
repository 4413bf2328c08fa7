#include "comm/engine/split.h"

#include <algorithm>

#include "core/error.h"

namespace hpt {

const std::vector<int>& own_part(const std::string& name, const std::vector<std::vector<int>>& partition,
                                 int rank, int size) {
  std::vector<bool> seen(static_cast<std::size_t>(size));
  const std::vector<int>* own = nullptr;
  std::size_t count = 0;
  for (const std::vector<int>& part : partition) {
    for (int member : part) {
      if (member < 0 || member >= size || seen[static_cast<std::size_t>(member)])
        fail(ErrorKind::runtime, "group {}: rank {} is listed twice or is not one of the {} to be split",
             name, member, counted(size, "rank"));
      seen[static_cast<std::size_t>(member)] = true;
      if (member == rank) own = &part;
      ++count;
    }
  }
  if (own == nullptr || count != seen.size())
    fail(ErrorKind::runtime, "group {}: the parts leave out {} of the {} to be split", name,
         seen.size() - count, counted(size, "rank"));
  return *own;
}

int place_of(int value, const std::vector<int>& values) {
  const auto found = std::find(values.begin(), values.end(), value);
  HPT_REQUIRE(found != values.end());
  return static_cast<int>(found - values.begin());
}

}  // namespace hpt
