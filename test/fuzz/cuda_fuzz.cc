// Kernels of CUDA, emulated.
#include "runtime/backends/cuda/register.h"
#include "test/doubles/cuda/emulated_bench.h"
#include "test/fuzz/fuzzer.h"

int main(int argc, char** argv) {
  ft::cuda::emulation::EmulatedBench bench;
  ft::cuda::KernelTable kernels;
  ft::cuda::RegisterCudaKernels(kernels);
  return ft::fuzz::Main(argc, argv, bench, kernels.Names());
}
