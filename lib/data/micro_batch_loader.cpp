#include "data/micro_batch_loader.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.h"
#include "core/hash.h"
#include "data/blend.h"
#include "data/sample_order.h"
#include "data/token_file.h"

namespace hpt {
namespace {

// A checked file with the samples it is cut into: sample i is tokens [i * s, i * s + s] of it.
struct Source {
  TokenFile file;
  std::int64_t num_samples = 0;
};

// A sample in a file; none past the end of a loader that does not shuffle.
struct Place {
  const Source* source = nullptr;
  std::int64_t sample = 0;
};

Source open_source(const DataSource& described, const LoaderOptions& options) {
  if (!std::isfinite(described.weight) || described.weight <= 0)
    fail(ErrorKind::usage, "{}: its weight is {}; a number above 0 would be right", described.path,
         described.weight);
  Source source{.file = TokenFile(described.path)};
  const TokenFileInfo& info = source.file.info();
  if (info.vocab_size > options.vocab_size)
    fail(ErrorKind::usage,
         "{}: was packed with a vocabulary of {}, above model.vocab_size {} (at least {} would be right)",
         described.path, info.vocab_size, options.vocab_size, info.vocab_size);
  source.num_samples = std::max<std::int64_t>(0, info.num_tokens - 1) / options.seq_length;
  if (source.num_samples < 1)
    fail(ErrorKind::usage, "{}: holds {}; one sample of model.seq_length {} needs {}", described.path,
         counted(info.num_tokens, "token"), options.seq_length, options.seq_length + 1);
  return source;
}

std::vector<double> weights_of(const LoaderOptions& options) {
  std::vector<double> weights;
  for (const DataSource& source : options.sources) weights.push_back(source.weight);
  return weights;
}

}  // namespace

struct MicroBatchLoader::Impl {
  LoaderOptions options;
  std::vector<Source> sources;
  std::optional<Blend> blend;  // once the weights are known to be good
  std::int64_t num_samples = 0;

  Place place_of(std::int64_t ordinal) const {
    const BlendEntry entry = blend->at(ordinal);
    const Source& source = sources[static_cast<std::size_t>(entry.source)];
    if (!options.shuffle) {
      if (entry.index >= source.num_samples) return {};
      return {&source, entry.index};
    }
    const SamplePermutation order(source.num_samples,
                                  {.seed = options.seed,
                                   .source = static_cast<std::uint64_t>(entry.source),
                                   .epoch = static_cast<std::uint64_t>(entry.index / source.num_samples)});
    return {&source, order(entry.index % source.num_samples)};
  }

  // Sequence `column` of the micro-batch.
  void load_sample(const MicroBatch& into, std::int64_t column, std::int64_t ordinal) const {
    const Place place = place_of(ordinal);
    if (into.has_tokens()) load_tokens(into.tokens, column, place, 0, 0);
    if (into.has_labels()) load_tokens(into.labels, column, place, 1, -1);
  }

  // The sample's tokens, `shift` of them further on, into a column; `missing` where there is no sample.
  void load_tokens(const Tensor& into, std::int64_t column, const Place& place, std::int64_t shift,
                   std::int32_t missing) const {
    const TokenSink sink{into.as<std::int32_t>() + column, into.shape[1]};
    if (place.source == nullptr) {
      for (std::int64_t position = 0; position < options.seq_length; ++position)
        sink.data[position * sink.stride] = missing;
      return;
    }
    const std::int64_t first = place.sample * options.seq_length + shift;
    place.source->file.read({first, options.seq_length}, options.vocab_size, sink);
  }
};

MicroBatchLoader::MicroBatchLoader(const LoaderOptions& options) : impl_(std::make_unique<Impl>()) {
  HPT_REQUIRE(options.seq_length >= 1 && options.vocab_size >= 1 && !options.sources.empty());
  impl_->options = options;
  for (const DataSource& described : options.sources) {
    impl_->sources.push_back(open_source(described, options));
    impl_->num_samples += impl_->sources.back().num_samples;
  }
  if (impl_->num_samples < options.min_samples)
    fail(ErrorKind::usage, "{}{}: {} of model.seq_length {}, but one batch.global needs {}",
         options.sources.front().path, options.sources.size() > 1 ? " and the rest of its blend" : "",
         counted(impl_->num_samples, "sample"), options.seq_length, options.min_samples);
  impl_->blend.emplace(weights_of(options));
}

MicroBatchLoader::~MicroBatchLoader() = default;

std::int64_t MicroBatchLoader::num_samples() const {
  return impl_->num_samples;
}

std::uint64_t MicroBatchLoader::fingerprint() const {
  std::uint64_t hash = 0;
  for (const Source& source : impl_->sources) {
    const std::uint64_t file = source.file.fingerprint();
    hash = hash64(&file, sizeof file, hash);
  }
  return hash;
}

void MicroBatchLoader::load(const MicroBatch& into, std::int64_t first_ordinal) const {
  const Shape shape{impl_->options.seq_length, into.num_sequences()};
  HPT_REQUIRE(first_ordinal >= 0);
  HPT_REQUIRE(!into.has_tokens() || into.tokens.shape == shape);
  HPT_REQUIRE(!into.has_labels() || into.labels.shape == shape);
  std::int64_t* ordinals = into.ordinals.as<std::int64_t>();
  for (std::int64_t column = 0; column < into.num_sequences(); ++column) {
    ordinals[column] = first_ordinal + column;
    impl_->load_sample(into, column, first_ordinal + column);
  }
}

std::int64_t MicroBatchLoader::count_predicted(std::int64_t first, std::int64_t count) const {
  HPT_REQUIRE(first >= 0 && count >= 0);
  if (impl_->options.shuffle) return count * impl_->options.seq_length;
  std::int64_t samples = 0;
  for (std::int64_t ordinal = first; ordinal < first + count; ++ordinal)
    if (impl_->place_of(ordinal).source != nullptr) ++samples;
  return samples * impl_->options.seq_length;
}

}  // namespace hpt
