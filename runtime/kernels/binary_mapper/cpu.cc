// binary_mapper and binary_mapper_grad.
#include <cmath>
#include <limits>

#include "runtime/backends/cpu/gemm.h"
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/base/workspace.h"
#include "runtime/kernels/binary_mapper/cpu_loops.h"
#include "runtime/kernels/binary_mapper/operands.h"
#include "runtime/kernels/cast/cpu_loops.h"
#include "runtime/kernels/embedding/cpu_loops.h"

namespace ft::cpu {
namespace {

KernelOr MakeBinaryMapper(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const BinaryMapperOperands read, ReadBinaryMapper(context.operands));
  const Tensor &index = read.index, &table = read.table;
  const EmbeddingArgs args = {index.as<int32_t>(), table.data, read.result.data, table.rows(), table.last()};
  return MakeRowwise(context.loops.embedding.embedding[FloatIndex(table.dtype)], args, index.elements(),
                     table.last(), context.num_threads);
}

// Rows that are worked on at once (workspace.h), and what is summed for them in f32.
constexpr int64_t kMaxRows = BinaryMapperRows(std::numeric_limits<int64_t>::max());

struct RowBlock {
  float logits[kMaxRows * kMaxCodeBits];
  float dlogits[kMaxRows * kMaxCodeBits];
};

// Adds one row's share of a block of codes: dl_h += sum_d g_d G_d (u_h(d) - s_h). `g` is its row of products.
void AddRow(const BinaryMapperLoops& loops, int bits, const float* g, int64_t row, int64_t block,
            RowBlock& rows) {
  double probability[kMaxCodeBits] = {}, sums[kMaxCodeBits] = {};
  for (int h = 0; h < bits; ++h) {
    probability[h] = 1.0 / (1.0 + std::exp(-double{rows.logits[row * bits + h]}));
  }
  const double total = loops.code_block(g, probability, bits, block, sums);
  float* dlogits = rows.dlogits + row * bits;
  for (int h = 0; h < bits; ++h) {
    const float share = static_cast<float>(sums[h] - probability[h] * total);
    dlogits[h] = block == 0 ? share : dlogits[h] + share;
  }
}

KernelOr MakeBinaryMapperGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const BinaryMapperOperands read, ReadBinaryMapperGrad(context.operands));
  const Tensor &dy = read.index, &logits = read.logits, &table = read.table, &dlogits = read.result;
  const int64_t rows = logits.rows(), bits = logits.last(), width = table.last();
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, BinaryMapperGradWorkspace(rows, bits)));
  const int64_t codes = BinaryMapperCodes(bits), block_rows = BinaryMapperRows(rows);
  const int64_t blocks = (int64_t{1} << bits) / codes;
  const DType dtype = logits.dtype;
  float* products = context.operands.workspace.as<float>();  // [row of the block, code of the block]
  return MakeKernel([=, &loops = context.loops, num_threads = context.num_threads] {
    const int64_t row_bytes = width * static_cast<int64_t>(SizeOf(dtype));
    RowBlock block;
    for (int64_t begin = 0; begin < rows; begin += block_rows) {
      const int64_t n = std::min(block_rows, rows - begin);
      loops.convert.to_float[FloatIndex(dtype)](logits.data, begin * bits, n * bits, block.logits);
      for (int64_t b = 0; b < blocks; ++b) {
        Gemm(loops, {.m = n, .n = codes, .k = width, .transpose_b = true},
             {dy.as<char>() + begin * row_bytes, dtype}, {table.as<char>() + b * codes * row_bytes, dtype},
             nullptr, products, num_threads);
        ParallelFor(n, ThreadsFor(num_threads, n * codes), [&](int64_t i) {
          AddRow(loops.binary_mapper, static_cast<int>(bits), products + i * codes, i, b, block);
        });
      }
      loops.convert.from_float[FloatIndex(dtype)](block.dlogits, dlogits.data, begin * bits, n * bits);
    }
  });
}

}  // namespace

void RegisterBinaryMapper(KernelRegistry& registry, Isa isa) {
  Add<MakeBinaryMapper>(registry, "binary_mapper", isa);
  Add<MakeBinaryMapperGrad>(registry, "binary_mapper_grad", isa);
}

}  // namespace ft::cpu
