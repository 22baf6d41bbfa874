#include "runtime/backends/cpu/register.h"

namespace ft {

void RegisterCpuKernels(KernelRegistry& registry) { RegisterCpuKernels(registry, cpu::BestIsa()); }

void RegisterCpuKernels(KernelRegistry& registry, cpu::Isa isa) {
  cpu::RegisterAccumulate(registry, isa);
  cpu::RegisterAttention(registry, isa);
  cpu::RegisterBinaryMapper(registry, isa);
  cpu::RegisterCast(registry, isa);
  cpu::RegisterCluster(registry, isa);
  cpu::RegisterCopy(registry, isa);
  cpu::RegisterDot(registry, isa);
  cpu::RegisterEmbedding(registry, isa);
  cpu::RegisterFill(registry, isa);
  cpu::RegisterIndex(registry, isa);
  cpu::RegisterInitialize(registry, isa);
  cpu::RegisterLinearCrossEntropy(registry, isa);
  cpu::RegisterLossCount(registry, isa);
  cpu::RegisterLossScaling(registry, isa);
  cpu::RegisterMatmul(registry, isa);
  cpu::RegisterMove(registry, isa);
  cpu::RegisterRotaryTable(registry, isa);
  cpu::RegisterSplitConcat(registry, isa);
  cpu::RegisterSumSquares(registry, isa);
  cpu::RegisterUpdate(registry, isa);
}

}  // namespace ft
