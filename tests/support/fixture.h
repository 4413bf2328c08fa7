// What PyTorch makes of two small GPTs in fp64: the files that tests/reference/make_fixture.py wrote.
#pragma once

#include <string>
#include <vector>

#include "support/reference_gpt.h"

namespace reference {

// A short training on the fixture's one batch: the same batch each step.
struct FixtureRun {
  std::vector<double> losses;
  std::vector<double> grad_norms;  // before clipping
  double clip = 0;
};

struct Fixture {
  GptDims dims;
  Batch batch;
  Parameters parameters;
  double loss = 0;
  Parameters gradients;
  AdamwOptions adamw_options;
  FixtureRun adamw;
  Parameters adamw_parameters;  // after the last step
  SgdOptions sgd_options;
  FixtureRun sgd;
};

// "gpt_tied": 2 layers, 3 heads, tied. "gpt_gqa": 3 layers, 4 heads on 2 kv heads, untied. Throws
// std::runtime_error where the file can't be read, nlohmann::json::exception where it lacks something.
Fixture load_fixture(const std::string& name);

}  // namespace reference
