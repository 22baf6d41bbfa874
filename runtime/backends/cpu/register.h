// The CPU backend's kernels: every op of dialects/ft/ops.td that computes, and those that the schedule adds.
#pragma once

#include "runtime/backends/cpu/isa.h"
#include "runtime/device/kernel.h"

namespace ft::cpu {

void RegisterAccumulate(KernelRegistry& registry, Isa isa);
void RegisterAttention(KernelRegistry& registry, Isa isa);
void RegisterBinaryMapper(KernelRegistry& registry, Isa isa);
void RegisterCast(KernelRegistry& registry, Isa isa);
void RegisterCluster(KernelRegistry& registry, Isa isa);
void RegisterCopy(KernelRegistry& registry, Isa isa);
void RegisterDot(KernelRegistry& registry, Isa isa);
void RegisterEmbedding(KernelRegistry& registry, Isa isa);
void RegisterFill(KernelRegistry& registry, Isa isa);
void RegisterIndex(KernelRegistry& registry, Isa isa);
void RegisterInitialize(KernelRegistry& registry, Isa isa);
void RegisterLinearCrossEntropy(KernelRegistry& registry, Isa isa);
void RegisterLossCount(KernelRegistry& registry, Isa isa);
void RegisterLossScaling(KernelRegistry& registry, Isa isa);
void RegisterMatmul(KernelRegistry& registry, Isa isa);
void RegisterMove(KernelRegistry& registry, Isa isa);
void RegisterRotaryTable(KernelRegistry& registry, Isa isa);
void RegisterSplitConcat(KernelRegistry& registry, Isa isa);
void RegisterSumSquares(KernelRegistry& registry, Isa isa);
void RegisterUpdate(KernelRegistry& registry, Isa isa);

}  // namespace ft::cpu

namespace ft {

// Adds all kernels, with the loops of the best instruction set of this machine or of a given usable one.
void RegisterCpuKernels(KernelRegistry& registry);
void RegisterCpuKernels(KernelRegistry& registry, cpu::Isa isa);

}  // namespace ft
