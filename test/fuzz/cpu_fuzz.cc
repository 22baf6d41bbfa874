// Kernels of the CPU.
#include "runtime/backends/cpu/register.h"
#include "test/conformance/cpu_bench.h"
#include "test/fuzz/fuzzer.h"

int main(int argc, char** argv) {
  ft::KernelRegistry registry;
  ft::RegisterCpuKernels(registry);
  ft::conformance::CpuBench bench(registry, /*num_threads=*/2);
  return ft::fuzz::Main(argc, argv, bench, registry.Names());
}
