#include "runtime/backends/cpu/kernels/primitives.h"

#include <algorithm>

#include "runtime/backends/cpu/kernels/chunk.h"
#include "runtime/backends/cpu/register.h"
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

// n elements from `begin` on of what the operand repeats: where they lie if they do so in f32, else in
// `space`.
const void* ReadOperand(const ChunkMover& mover, const ElementwiseOperand& operand, int64_t begin, int64_t n,
                        Chunk& space) {
  int64_t offset = begin % operand.period;
  if (operand.dtype == DType::kF32 && offset + n <= operand.period)
    return static_cast<const float*>(operand.data) + offset;
  int64_t done = 0;
  if (operand.period == 1) {  // no call for each element
    mover.Read(operand.data, operand.dtype, 0, 1, &space);
    Spread(operand.dtype, n, &space);
    done = n;
  }
  for (; done < n; offset = 0) {
    const int64_t run = std::min(operand.period - offset, n - done);
    mover.Read(operand.data, operand.dtype, offset, run, &space, done);
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
      mover.Write(&result, n, operands.result, operands.result_dtype, begin);
    }
  }
};

template <Elementwise kKind>
KernelOr MakeRow(const KernelContext& context) {
  return MakePrimitive(RowOf(kKind), context);
}

KernelOr MakeConvert(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const ConvertOperands operands, CheckConvert(context.operands));
  const ChunkMover mover = {context.routines.convert};
  return MakeRowwise(
      [=](int64_t begin, int64_t end) {
        Chunk chunk, converted;
        for (; begin < end; begin += kChunk) {
          const int64_t n = std::min(kChunk, end - begin);
          mover.Read(operands.x, operands.from, begin, n, &chunk);
          ConvertChunk(&chunk, operands.from, &converted, operands.to, n);
          mover.Write(&converted, n, operands.result, operands.to, begin);
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
