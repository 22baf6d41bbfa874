#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/kernels/rotary_table/cuda_device.h"
#include "runtime/kernels/rotary_table/operands.h"

namespace ft::cuda {
namespace {

// Launches for kMaxFrequencies columns at a time.
std::vector<RotaryTableArgs> Launches(const RotaryTableOperands& table) {
  RotaryTableArgs args = {};
  args.cosine = table.cosine.as<float>();
  args.sine = table.sine.as<float>();
  args.positions = table.positions();
  args.half = table.half();
  args.scale = static_cast<float>(table.scale);
  std::vector<RotaryTableArgs> launches;
  for (args.first = 0; args.first < args.half; args.first += kMaxFrequencies) {
    args.count = std::min<int64_t>(kMaxFrequencies, args.half - args.first);
    for (int64_t i = 0; i < args.count; ++i)
      args.quarter_turns[i] = table.frequencies[args.first + i] / (M_PI / 2);
    launches.push_back(args);
  }
  return launches;
}

KernelOr MakeRotaryTable(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const RotaryTableOperands table, ReadRotaryTable(context.operands, context.attributes));
  if (table.positions() > std::numeric_limits<int32_t>::max())
    return absl::InvalidArgumentError(fmt::format("{} positions are too many", table.positions()));
  return MakeKernel([launches = Launches(table)](StreamHandle stream) {
    for (const RotaryTableArgs& launch : launches) {
      if (const int error = RotaryTable(launch, stream); error != 0) return error;
    }
    return 0;
  });
}

}  // namespace

void RegisterRotaryTable(KernelTable& table) { table.Add("rotary_table", &MakeRotaryTable); }

}  // namespace ft::cuda
