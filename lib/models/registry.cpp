#include "models/registry.h"

#include "models/gpt/gpt.h"

namespace hpt {

const ModelFamily& family_of(Family family) {
  static constexpr ModelFamily kGpt = {gpt::make_rows, gpt::make_unit};
  if (family == Family::gpt) return kGpt;
  fail(ErrorKind::usage, "model.family: this version trains gpt only");
}

}  // namespace hpt
