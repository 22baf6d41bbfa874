// The rows of the table of settings, by subject. Read by settings.cc alone.
#pragma once

#include <vector>

#include "tools/ftc/config/settings.h"

namespace ftc {

std::vector<Setting> ShardingRows();
std::vector<Setting> OverlapRows();
std::vector<Setting> PrecisionRows();
std::vector<Setting> MemoryRows();
std::vector<Setting> OptimizerRows();
std::vector<Setting> AccumulationRows();
std::vector<Setting> MeshRows();
std::vector<Setting> RunRows();

inline constexpr int64_t kMostSteps = int64_t{1} << 53;  // kept in the plan as doubles

// A field of a Configuration, const or not, for the factories of values.h.
#define FT_FIELD(path) [](auto& c) -> auto& { return c.path; }
#define FT_OPTION(path) FT_FIELD(options.path)

}  // namespace ftc
