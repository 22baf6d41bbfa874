#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/kernels/rotary_table/operands.h"

namespace ft::cpu {
namespace {

// cos and sin of position * frequency, computed in f64, so that those of high positions are exact.
void FillTables(const RotaryTableOperands& table, std::vector<float>& cosine, std::vector<float>& sine) {
  const int64_t positions = table.positions(), half = table.half();
  cosine.resize(positions * half);
  sine.resize(positions * half);
  for (int64_t i = 0; i < half; ++i) {
    for (int64_t t = 0; t < positions; ++t) {
      const double angle = static_cast<double>(t) * table.frequencies[i];
      cosine[t * half + i] = static_cast<float>(table.scale * std::cos(angle));
      sine[t * half + i] = static_cast<float>(table.scale * std::sin(angle));
    }
  }
}

// Computed when it is loaded: a step copies.
KernelOr MakeRotaryTable(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const RotaryTableOperands table, ReadRotaryTable(context.operands, context.attributes));
  std::vector<float> cosine, sine;
  FillTables(table, cosine, sine);
  return MakeKernel([cosine = std::move(cosine), sine = std::move(sine), to_cosine = table.cosine.data,
                     to_sine = table.sine.data] {
    std::memcpy(to_cosine, cosine.data(), cosine.size() * sizeof(float));
    std::memcpy(to_sine, sine.data(), sine.size() * sizeof(float));
  });
}

}  // namespace

void RegisterRotaryTable(KernelRegistry& registry, Isa isa) {
  Add<MakeRotaryTable>(registry, "rotary_table", isa);
}

}  // namespace ft::cpu
