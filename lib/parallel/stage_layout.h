// Which pipeline units (0 = embedding, 1..L = blocks, L+1 = final norm and head) each stage holds. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hpt {

struct UnitRange {
  int begin = 0;
  int end = 0;
  int size() const { return end - begin; }
  bool operator==(const UnitRange&) const = default;
};

// Relative work of the three kinds of unit; blocks count 1 each.
struct UnitCosts {
  double embedding = 0;
  double block = 1;
  double head = 0;
};

// Units of each of num_stages stages, ascending and without gaps. `layers_per_stage` (empty = auto) gives the
// blocks of each stage; auto minimises the heaviest stage's work and, among equals, gives earlier stages the
// spare ones. Every stage gets at least one block: num_layers >= num_stages (else an Error of kind usage).
std::vector<UnitRange> stage_units(std::int64_t num_layers, int num_stages,
                                   std::span<const std::int64_t> layers_per_stage, const UnitCosts& costs);

}  // namespace hpt
