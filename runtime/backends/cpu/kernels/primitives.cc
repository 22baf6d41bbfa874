#include "runtime/backends/cpu/kernels/primitives.h"

#include <cmath>
#include <limits>

#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/convert.h"
#include "runtime/backends/cpu/routines/primitives.h"
#include "runtime/device/elementwise_operands.h"

namespace ft::cpu {
namespace {

constexpr int64_t kChunk = 1024;

// Space for a chunk, as floats or as integers.
union Chunk {
  alignas(64) float floats[kChunk];
  int64_t integers[kChunk];
};

template <typename T>
void Widen(const void* from, int64_t begin, int64_t n, int64_t* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<int64_t>(static_cast<const T*>(from)[begin + i]);
}
template <typename T>
void Narrow(const int64_t* from, int64_t n, void* to, int64_t begin) {
  for (int64_t i = 0; i < n; ++i) static_cast<T*>(to)[begin + i] = static_cast<T>(from[i]);
}

// Between a tensor and a chunk, floats as f32, everything else as i64.
struct ChunkMover {
  const ConvertRoutines& convert;

  void Read(const void* from, DType dtype, int64_t begin, int64_t n, Chunk& chunk, int64_t at) const {
    if (IsFloat(dtype)) return convert.to_float[FloatIndex(dtype)](from, begin, n, chunk.floats + at);
    if (dtype == DType::kI32) return Widen<int32_t>(from, begin, n, chunk.integers + at);
    if (dtype == DType::kI64) return Widen<int64_t>(from, begin, n, chunk.integers + at);
    Widen<uint8_t>(from, begin, n, chunk.integers + at);
  }

  void Write(const Chunk& chunk, int64_t n, void* to, DType dtype, int64_t begin) const {
    if (IsFloat(dtype)) return convert.from_float[FloatIndex(dtype)](chunk.floats, to, begin, n);
    if (dtype == DType::kI32) return Narrow<int32_t>(chunk.integers, n, to, begin);
    if (dtype == DType::kI64) return Narrow<int64_t>(chunk.integers, n, to, begin);
    Narrow<uint8_t>(chunk.integers, n, to, begin);
  }
};

// n elements from `begin` on of what the operand repeats: where they lie if they do so in f32, else in
// `space`.
const void* ReadOperand(const ChunkMover& mover, const ElementwiseOperand& operand, int64_t begin, int64_t n,
                        Chunk& space) {
  int64_t offset = begin % operand.period;
  if (operand.dtype == DType::kF32 && offset + n <= operand.period)
    return static_cast<const float*>(operand.data) + offset;
  int64_t done = 0;
  if (operand.period == 1) {  // what is read once is there once: no call for each element
    mover.Read(operand.data, operand.dtype, 0, 1, space, 0);
    if (IsFloat(operand.dtype)) {
      std::fill_n(space.floats + 1, n - 1, space.floats[0]);
    } else {
      std::fill_n(space.integers + 1, n - 1, space.integers[0]);
    }
    done = n;
  }
  for (; done < n; offset = 0) {
    const int64_t run = std::min(operand.period - offset, n - done);
    mover.Read(operand.data, operand.dtype, offset, run, space, done);
    done += run;
  }
  return &space;
}

struct PrimitiveLoop {
  ElementwiseOperands operands;
  ChunkFunction function;
  ChunkMover mover;

  void operator()(int64_t begin, int64_t end) const {
    Chunk spaces[kMaxElementwiseOperands], result;
    for (; begin < end; begin += kChunk) {
      const int64_t n = std::min(kChunk, end - begin);
      const void* in[kMaxElementwiseOperands];
      for (int i = 0; i < kMaxElementwiseOperands; ++i)
        in[i] = i < operands.count ? ReadOperand(mover, operands.in[i], begin, n, spaces[i]) : in[0];
      function(in, &result, operands.parameters.data(), n);
      mover.Write(result, n, operands.result, operands.result_dtype, begin);
    }
  }
};

template <Elementwise kKind>
KernelOr MakeRow(const KernelContext& context) {
  return MakePrimitive(RowOf(kKind), context);
}

// Towards zero; the ends of the type for what is beyond them, 0 for NaN.
template <typename T>
int64_t Truncated(float value) {
  if (std::isnan(value)) return 0;
  constexpr float kEnd =
      -static_cast<float>(std::numeric_limits<T>::min());  // 2^31 or 2^63, one above the largest
  if (value >= kEnd) return std::numeric_limits<T>::max();
  return value <= -kEnd ? std::numeric_limits<T>::min() : static_cast<int64_t>(value);
}

int64_t ToInteger(float value, DType dtype) {
  if (dtype == DType::kU8) return value != 0 ? 1 : 0;
  return dtype == DType::kI32 ? Truncated<int32_t>(value) : Truncated<int64_t>(value);
}

int64_t ToInteger(int64_t value, DType dtype) {
  return dtype == DType::kU8 ? static_cast<int64_t>(value != 0) : value;
}

// In one chunk: each element is written where a chunk of the other kind has it once those before it were
// read.
void ConvertChunk(Chunk& chunk, int64_t n, DType from, DType to) {
  Chunk converted;
  for (int64_t i = 0; i < n; ++i) {
    if (IsFloat(to)) {
      converted.floats[i] = IsFloat(from) ? chunk.floats[i] : static_cast<float>(chunk.integers[i]);
    } else {
      converted.integers[i] =
          IsFloat(from) ? ToInteger(chunk.floats[i], to) : ToInteger(chunk.integers[i], to);
    }
  }
  chunk = converted;
}

KernelOr MakeConvert(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const ConvertOperands operands, CheckConvert(context.operands));
  const ChunkMover mover = {context.routines.convert};
  return MakeRowwise(
      [=](int64_t begin, int64_t end) {
        Chunk chunk;
        for (; begin < end; begin += kChunk) {
          const int64_t n = std::min(kChunk, end - begin);
          mover.Read(operands.x, operands.from, begin, n, chunk, 0);
          ConvertChunk(chunk, n, operands.from, operands.to);
          mover.Write(chunk, n, operands.result, operands.to, begin);
        }
      },
      operands.elements, 1, context.num_threads);
}

}  // namespace

KernelOr MakePrimitive(const ElementwiseRow& row, const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const ElementwiseOperands operands,
                      CheckElementwise(row, context.operands, context.attributes));
  const PrimitiveRoutines& routines = context.routines.primitives;
  const auto index = static_cast<size_t>(row.kind);
  const ChunkFunction function = operands.of_floats ? routines.of_floats[index] : routines.of_integers[index];
  const PrimitiveLoop loop = {operands, function, {context.routines.convert}};
  const int threads = ThreadsFor(context.num_threads, operands.elements);
  return MakeKernel([=] { ParallelRanges(operands.elements, kGrain, threads, loop); });
}

// After those that have a kernel of their own for what is most frequent (add, mul, scale).
void RegisterPrimitives(KernelRegistry& registry, Isa isa) {
#define FT_ELEMENTWISE(Name, mnemonic, domain, operands, parameters, value, gradients, summary) \
  if (registry.Find(#mnemonic) == nullptr) Add<MakeRow<Elementwise::k##Name>>(registry, #mnemonic, isa);
#include "runtime/base/elementwise.def"
#undef FT_ELEMENTWISE
  Add<MakeConvert>(registry, "convert", isa);
}

}  // namespace ft::cpu
