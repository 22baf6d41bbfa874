// init_normal, init_uniform and init_constant, a parameter's part of what this rank holds of its unit.
#include <algorithm>
#include <bit>

#include "runtime/backends/cuda/register.h"
#include "runtime/base/round_float.h"
#include "runtime/kernels/movement/cuda_device.h"
#include "runtime/kernels/random/cuda_device.h"
#include "runtime/kernels/random/operands.h"

namespace ft::cuda {
namespace {

template <int (*kDraw)(const DrawArgs&, StreamHandle)>
KernelOr MakeInitDrawn(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const InitialValues target, ReadDrawnValues(context.operands, context.attributes));
  const Tensor& slice = target.slice;
  const int64_t size = static_cast<int64_t>(SizeOf(slice.dtype));
  const DrawArgs args = {target.rng,
                         slice.as<std::byte>() + target.begin * size,
                         slice.dtype,
                         target.first,
                         target.end - target.begin,
                         target.stream,
                         target.value};
  return MakeKernel([args](StreamHandle stream) { return kDraw(args, stream); });
}

// The bytes of an element with this value, repeated.
uint64_t PatternOf(DType dtype, float value) {
  if (dtype == DType::kF32) return std::bit_cast<uint32_t>(value) * 0x0000000100000001u;
  return (dtype == DType::kBF16 ? RoundToBF16(value) : RoundToF16(value)) * 0x0001000100010001u;
}

KernelOr MakeInitConstant(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const InitialValues target, ReadInitialValues(context.operands, context.attributes));
  const Tensor& slice = target.slice;
  const int64_t size = static_cast<int64_t>(SizeOf(slice.dtype));
  FillArgs args = {
      slice.as<std::byte>(), PatternOf(slice.dtype, target.value), (target.end - target.begin) * size, 1, {}};
  args.ranges[0] = {target.begin * size, target.end * size};
  return MakeKernel([args](StreamHandle stream) { return Fill(args, stream); });
}

}  // namespace

void RegisterRandom(KernelTable& table) {
  table.Add("init_normal", &MakeInitDrawn<Normal>);
  table.Add("init_uniform", &MakeInitDrawn<Uniform>);
  table.Add("init_constant", &MakeInitConstant);
}

}  // namespace ft::cuda
