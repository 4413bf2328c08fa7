// The sums and maxima behind every reduction over ranks, in one fixed order: element i of the result is
// ((x0[i] + x1[i]) + x2[i]) + ..., sources ascending, whatever the length or where a caller cuts it into
// pieces. So its bits depend on the values alone. It is no op of a Backend: comm, which needs it, may not
// include backend.
#pragma once

#include <cstddef>
#include <span>

#include "core/dtype.h"

namespace hpt {

// out[i] := sum over s of sources[s][i], for `num_elements` elements of `dtype`; at least one source. `out`
// may be one of the sources but must not overlap one otherwise. Integers wrap around.
void reduce_sum(DType dtype, void* out, std::span<const void* const> sources, std::size_t num_elements);

// The same with the maximum; a NaN in any source makes a NaN, so that none is hidden.
void reduce_max(DType dtype, void* out, std::span<const void* const> sources, std::size_t num_elements);

}  // namespace hpt
