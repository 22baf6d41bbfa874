// init_normal and init_constant, a parameter's part of what this rank holds of its unit; dropout, which is
// its own gradient's kernel too.
#include "runtime/backends/cuda/routines/random.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/backends/cuda/routines/movement.h"
#include "runtime/base/philox.h"
#include "runtime/base/round_float.h"

namespace ft::cuda {
namespace {

// Elements [begin, end) of the slice, where the parameter's element `first` is the one at `begin`.
struct Target {
  std::byte* data;
  DType dtype;  // f32, bf16 or f16
  int64_t begin;
  int64_t end;
  int64_t first;
  float value;
};

absl::StatusOr<Target> FindTarget(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  const Tensor &rng = context.in(0), &slice = context.out(0);
  FT_RETURN_IF_ERROR(CheckSize(rng, "rng", 3, DType::kI64));
  FT_RETURN_IF_ERROR(CheckFloat(slice, "slice"));
  FT_ASSIGN_OR_RETURN(const int64_t begin, context.attributes.Int("begin"));
  FT_ASSIGN_OR_RETURN(const int64_t end, context.attributes.Int("end"));
  FT_ASSIGN_OR_RETURN(const double value, context.attributes.Float("value"));
  Target target;
  target.data = slice.as<std::byte>();
  target.dtype = slice.dtype;
  target.begin = std::clamp<int64_t>(begin - slice.flat_begin, 0, slice.elements());
  target.end = std::clamp<int64_t>(end - slice.flat_begin, target.begin, slice.elements());
  target.first = target.begin + slice.flat_begin - begin;
  target.value = static_cast<float>(value);
  return target;
}

KernelOr MakeInitNormal(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const Target target, FindTarget(context));
  FT_ASSIGN_OR_RETURN(const int64_t stream, context.attributes.Int("stream"));
  if (target.begin < target.end && target.first % 4 != 0) {
    return absl::InvalidArgumentError("the slice must begin at a multiple of 4 elements of the parameter");
  }
  const int64_t size = static_cast<int64_t>(SizeOf(target.dtype));
  const NormalArgs args = {
      context.in(0).as<int64_t>(), target.data + target.begin * size, target.dtype, target.first,
      target.end - target.begin,   static_cast<uint32_t>(stream),     target.value};
  return MakeKernel([args](StreamHandle stream) { return Normal(args, stream); });
}

// The bytes of an element with this value, repeated.
uint64_t PatternOf(DType dtype, float value) {
  if (dtype == DType::kF32) return std::bit_cast<uint32_t>(value) * 0x0000000100000001u;
  return (dtype == DType::kBF16 ? RoundToBF16(value) : RoundToF16(value)) * 0x0001000100010001u;
}

KernelOr MakeInitConstant(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const Target target, FindTarget(context));
  const int64_t size = static_cast<int64_t>(SizeOf(target.dtype));
  FillArgs args = {
      target.data, PatternOf(target.dtype, target.value), (target.end - target.begin) * size, 1, {}};
  args.ranges[0] = {target.begin * size, target.end * size};
  return MakeKernel([args](StreamHandle stream) { return Fill(args, stream); });
}

KernelOr MakeDropout(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 2, 1));
  const Tensor &x = context.in(0), &rng = context.in(1), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckSize(rng, "rng", 3, DType::kI64));
  FT_RETURN_IF_ERROR(CheckSameShape(r, "result", x));
  FT_ASSIGN_OR_RETURN(const double rate, context.attributes.Float("rate"));
  FT_ASSIGN_OR_RETURN(const int64_t stream, context.attributes.Int("stream"));
  if (!(rate >= 0.0 && rate < 1.0)) {
    return absl::InvalidArgumentError(fmt::format("'rate' must be at least 0 and below 1, got {}", rate));
  }
  const DropoutArgs args = {
      rng.as<int64_t>(), x.data, r.data, x.elements(), kFirstOpStream + static_cast<uint32_t>(stream),
      // u = k 2^-24 >= rate exactly when k >= ceil(rate 2^24).
      static_cast<uint32_t>(std::ceil(rate * 0x1p24)), static_cast<float>(1.0 / (1.0 - rate))};
  return MakeKernel([args, dtype = x.dtype](StreamHandle stream) { return Dropout(args, dtype, stream); });
}

}  // namespace

void RegisterRandom(KernelTable& table) {
  table.Add("init_normal", &MakeInitNormal);
  table.Add("init_constant", &MakeInitConstant);
  table.Add("dropout", &MakeDropout);
}

}  // namespace ft::cuda
