// MicroBatchLoader: tokens and labels of one micro-batch as a pure function of (seed, global sample
// ordinals). A sample is seq_length tokens and their successors; sample i of a file starts at token i *
// seq_length; ordinal n of the run is sample permutation(seed, epoch)[n mod N] with epoch n / N: epochs
// follow each other without a gap, a batch may span two. Blends pick the source of ordinal n by weight.
// Nothing depends on the layout.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "tensor/micro_batch.h"

namespace hpt {

struct LoaderOptions {
  std::vector<DataSource> sources;
  std::int64_t seq_length = 0;
  std::int64_t vocab_size = 0;  // token ids at or above it are refused, naming file and offset, before use
  std::uint64_t seed = 0;
  bool shuffle = true;  // false: samples in file order (evaluation)
  // Fewer in one epoch are refused; a training set holds at least one global batch.
  std::int64_t min_samples = 1;
};

class MicroBatchLoader {
 public:
  // Opens (mmaps) and checks every source; Error of kind usage with the path and sizes when one is not
  // usable: damaged header, wrong size, a vocabulary above vocab_size, too short for one sample, a weight
  // that is not above 0.
  explicit MicroBatchLoader(const LoaderOptions& options);
  ~MicroBatchLoader();

  // Samples of one epoch (over all sources for a blend).
  std::int64_t num_samples() const;

  // Equal where the sources' files hold the same tokens, as far as their headers and a sample of them tell.
  std::uint64_t fingerprint() const;

  // Fills a micro-batch of b sequences, what it has of tokens and labels, with the samples of ordinals
  // [first_ordinal, first_ordinal + b). Past the last sample of a loader that does not shuffle (of its
  // source, in a blend), labels are all -1 and tokens 0. Tensors as in MicroBatch, owned by the caller, on
  // the host. Allocates nothing. Error of kind runtime for a token id at or above vocab_size, with file and
  // offset; `into` is then not to be used.
  void load(const MicroBatch& into, std::int64_t first_ordinal) const;

  // Labels >= 0 among the samples of ordinals [first, first + count): the divisor of the loss. Pure, no file
  // access beyond what labels need.
  std::int64_t count_predicted(std::int64_t first, std::int64_t count) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hpt
