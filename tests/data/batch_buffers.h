// A micro-batch with memory of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/micro_batch.h"

struct BatchBuffers {
  BatchBuffers(std::int64_t seq_length, std::int64_t num_sequences)
      : tokens(static_cast<std::size_t>(seq_length * num_sequences), -77),
        labels(tokens.size(), -77),
        ordinals(static_cast<std::size_t>(num_sequences), -77) {
    batch.tokens = {tokens.data(), hpt::DType::i32, {seq_length, num_sequences}};
    batch.labels = {labels.data(), hpt::DType::i32, {seq_length, num_sequences}};
    batch.ordinals = {ordinals.data(), hpt::DType::i64, {num_sequences}};
  }
  BatchBuffers(const BatchBuffers&) = delete;
  BatchBuffers& operator=(const BatchBuffers&) = delete;

  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> labels;
  std::vector<std::int64_t> ordinals;
  hpt::MicroBatch batch;
};
