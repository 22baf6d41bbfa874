#include "runtime/backends/cuda/device_code/gpu.h"
#include "runtime/backends/cuda/device_code/store.h"
#include "runtime/kernels/embedding/cuda_device.h"

namespace ft::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRowsPerBlock = kThreads / kWarp;

// A warp copies a row.
template <typename T, int kWidth>
__global__ __launch_bounds__(kThreads) void CopyRows(EmbeddingArgs args) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRowsPerBlock + threadIdx.x / kWarp;
  if (row >= args.rows) return;
  const int64_t id = args.ids[row];
  T* result = static_cast<T*>(args.result) + row * args.columns;
  const int packs = static_cast<int>(args.columns / kWidth);
  if (id < 0 || id >= args.vocabulary) {
    for (int i = lane; i < args.columns; i += kWarp) result[i] = FromFloat<T>(__uint_as_float(0x7FC00000u));
    return;
  }
  const T* source = static_cast<const T*>(args.table) + id * args.columns;
#pragma unroll 4
  for (int i = lane; i < packs; i += kWarp) {
    StoreSome<T, kWidth>(result + i * kWidth, LoadSome<T, kWidth>(source + i * kWidth));
  }
}

template <typename T, int kWidth>
int LaunchCopyRows(const EmbeddingArgs& args, StreamHandle stream) {
  LaunchShape shape;
  shape.grid_x = static_cast<unsigned>((args.rows + kRowsPerBlock - 1) / kRowsPerBlock);
  shape.block_x = kThreads;
  return Launch(&CopyRows<T, kWidth>, shape, stream, args);
}

}  // namespace

int Embedding(const EmbeddingArgs& args, StreamHandle stream) {
  if (args.rows == 0) return 0;
  return WithFloatType(args.dtype, [&]<typename T>() {
    return CanPack<T>(args.table, args.columns) && CanPack<T>(args.result, args.columns)
               ? LaunchCopyRows<T, 16 / sizeof(T)>(args, stream)
               : LaunchCopyRows<T, 1>(args, stream);
  });
}

}  // namespace ft::cuda
