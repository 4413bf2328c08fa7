#include "models/registry.h"

#include "models/bloom/bloom.h"
#include "models/gpt/gpt.h"
#include "models/llama/llama.h"

namespace hpt {

const ModelFamily& family_of(Family family) {
  static constexpr ModelFamily kGpt = {gpt::make_rows, gpt::make_unit};
  static constexpr ModelFamily kBloom = {bloom::make_rows, nullptr};
  static constexpr ModelFamily kLlama = {llama::make_rows, nullptr};
  switch (family) {
    case Family::gpt:
      return kGpt;
    case Family::bloom:
      return kBloom;
    case Family::llama:
      return kLlama;
  }
  fail(ErrorKind::runtime, "internal error: no such model family");
}

}  // namespace hpt
