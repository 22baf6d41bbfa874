#include "runtime/backends/cuda/device_code/gpu.h"
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

__global__ void __launch_bounds__(kOneBlock)
    CountTargetsKernel(const int32_t* targets, int rows, int all, int64_t* count, float* share) {
  const int counted = CountTargets(targets, rows);
  if (threadIdx.x != 0) return;
  count[0] = counted;
  count[1] = all;
  *share = static_cast<float>(counted) / static_cast<float>(all);
}

__global__ void CountedMeanKernel(const int64_t* count, const float* loss, float* mean, float* factor) {
  const double counted = static_cast<double>(count[0]), all = static_cast<double>(count[1]);
  const float times = counted > 0 ? static_cast<float>(all / counted) : __uint_as_float(0x7FC00000u);  // NaN
  *factor = times;
  *mean = *loss * times;
}

}  // namespace

int LossCount(const float* loss, const int32_t* targets, int rows, float* sum, StreamHandle stream) {
  return Launch(LossCountKernel, {.block_x = kOneBlock}, stream, loss, targets, rows, sum);
}

int CountTargets(const int32_t* targets, int rows, int all, int64_t* count, float* share,
                 StreamHandle stream) {
  return Launch(CountTargetsKernel, {.block_x = kOneBlock}, stream, targets, rows, all, count, share);
}

int CountedMean(const int64_t* count, const float* loss, float* mean, float* factor, StreamHandle stream) {
  return Launch(CountedMeanKernel, {}, stream, count, loss, mean, factor);
}

}  // namespace ft::cuda
