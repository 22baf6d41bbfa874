// How a plan fares with other numbers of ranks, each with the same batch: weak scaling.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/mesh.h"
#include "tools/ftc/explain.h"
#include "tools/ftc/step_cost.h"

namespace ftc {

struct ScalingRow {
  ft::Mesh mesh;
  StepCost cost;
  uint64_t arena_bytes = 0;
};

// Of one plan; as many ranks as it is explained for among them, ascending.
struct Scaling {
  std::vector<ScalingRow> rows;
  std::vector<LeftOut> left_out;  // by the number of ranks
};

// Sizes that are shown when none are named: powers of two up to 1024, or 8 times `ranks` where that is more.
std::vector<int> UsualWorldSizes(int ranks);

ScalingRow RowOf(const Explained& explained);

}  // namespace ftc
