// What every transport's split() begins with.
#pragma once

#include <string>
#include <vector>

namespace hpt {

// The set of `partition` that holds `rank`. Fails unless the sets together hold each of `size` ranks once.
const std::vector<int>& own_part(const std::string& name, const std::vector<std::vector<int>>& partition,
                                 int rank, int size);

// Place of `value` in `values`, which hold it.
int place_of(int value, const std::vector<int>& values);

}  // namespace hpt
