#include "runtime/kernels/loss_count/cuda_count.h"
#include "runtime/kernels/loss_count/cuda_device.h"

namespace ft::cuda {
namespace {

__global__ void __launch_bounds__(kOneBlock)
    LossCountKernel(const float* loss, const int32_t* targets, int rows, float* sum) {
  const int counted = CountTargets(targets, rows);
  if (threadIdx.x != 0) return;
  sum[0] = static_cast<float>(static_cast<double>(*loss) * static_cast<double>(counted));
  sum[1] = static_cast<float>(counted);
}

}  // namespace

int LossCount(const float* loss, const int32_t* targets, int rows, float* sum, StreamHandle stream) {
  return Launch(LossCountKernel, {.block_x = kOneBlock}, stream, loss, targets, rows, sum);
}

}  // namespace ft::cuda
