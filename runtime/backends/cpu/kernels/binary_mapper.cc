// binary_mapper and binary_mapper_grad.
#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "runtime/backends/cpu/gemm.h"
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/convert.h"
#include "runtime/backends/cpu/routines/latent.h"
#include "runtime/backends/cpu/routines/rows.h"
#include "runtime/base/checked.h"
#include "runtime/base/workspace.h"

namespace ft::cpu {
namespace {

absl::Status CheckTable(const Tensor& table, const Tensor& logits) {
  FT_RETURN_IF_ERROR(CheckPresent(table, "table", logits.dtype));
  const int64_t bits = logits.last();
  if (bits >= 1 && bits <= kMaxBits && table.rows() == int64_t{1} << bits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("table must have 2^H rows for H logits, H at most {}, got {} and H = {}", kMaxBits,
                  table.rows(), bits));
}

KernelOr MakeBinaryMapper(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, 1));
  const Tensor &logits = context.in(0), &index = context.in(1), &table = context.in(2), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(logits, "logits"));
  FT_RETURN_IF_ERROR(CheckTable(table, logits));
  FT_RETURN_IF_ERROR(CheckSize(index, "index", logits.rows(), DType::kI32));
  FT_RETURN_IF_ERROR(CheckSize(r, "result", CheckedMul(index.elements(), table.last()), table.dtype));
  const EmbeddingArgs args = {index.as<int32_t>(), table.data, r.data, table.rows(), table.last()};
  return MakeRowwise(context.routines.rows.embedding[FloatIndex(table.dtype)], args, index.elements(),
                     table.last(), context.num_threads);
}

// Rows that are worked on at once (workspace.h), and what is summed for them in f32.
constexpr int64_t kMaxRows = BinaryMapperRows(std::numeric_limits<int64_t>::max());

struct RowBlock {
  float logits[kMaxRows * kMaxBits];
  float dlogits[kMaxRows * kMaxBits];
};

// Adds one row's share of a block of codes: dl_h += sum_d g_d G_d (u_h(d) - s_h). `g` is its row of products.
void AddRow(const LatentRoutines& routines, int bits, const float* g, int64_t row, int64_t block,
            RowBlock& rows) {
  double probability[kMaxBits] = {}, sums[kMaxBits] = {};
  for (int h = 0; h < bits; ++h) {
    probability[h] = 1.0 / (1.0 + std::exp(-double{rows.logits[row * bits + h]}));
  }
  const double total = routines.code_block(g, probability, bits, block, sums);
  float* dlogits = rows.dlogits + row * bits;
  for (int h = 0; h < bits; ++h) {
    const float share = static_cast<float>(sums[h] - probability[h] * total);
    dlogits[h] = block == 0 ? share : dlogits[h] + share;
  }
}

KernelOr MakeBinaryMapperGrad(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, 1));
  const Tensor &dy = context.in(0), &logits = context.in(1), &table = context.in(2),
               &dlogits = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(logits, "logits"));
  FT_RETURN_IF_ERROR(CheckTable(table, logits));
  FT_RETURN_IF_ERROR(CheckSize(dy, "dy", CheckedMul(logits.rows(), table.last()), table.dtype));
  FT_RETURN_IF_ERROR(CheckSameShape(dlogits, "dlogits", logits));
  const int64_t rows = logits.rows(), bits = logits.last(), width = table.last();
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, BinaryMapperGradWorkspace(rows, bits)));
  const int64_t codes = BinaryMapperCodes(bits), block_rows = BinaryMapperRows(rows);
  const int64_t blocks = (int64_t{1} << bits) / codes;
  const DType dtype = logits.dtype;
  float* products = context.operands.workspace.as<float>();  // [row of the block, code of the block]
  return MakeKernel([=, &routines = context.routines, num_threads = context.num_threads] {
    const int64_t row_bytes = width * static_cast<int64_t>(SizeOf(dtype));
    RowBlock block;
    for (int64_t begin = 0; begin < rows; begin += block_rows) {
      const int64_t n = std::min(block_rows, rows - begin);
      routines.convert.to_float[FloatIndex(dtype)](logits.data, begin * bits, n * bits, block.logits);
      for (int64_t b = 0; b < blocks; ++b) {
        Gemm(routines, {.m = n, .n = codes, .k = width, .transpose_b = true},
             {dy.as<char>() + begin * row_bytes, dtype}, {table.as<char>() + b * codes * row_bytes, dtype},
             nullptr, products, num_threads);
        ParallelFor(n, ThreadsFor(num_threads, n * codes), [&](int64_t i) {
          AddRow(routines.latent, static_cast<int>(bits), products + i * codes, i, b, block);
        });
      }
      routines.convert.from_float[FloatIndex(dtype)](block.dlogits, dlogits.data, begin * bits, n * bits);
    }
  });
}

}  // namespace

void RegisterBinaryMapper(KernelRegistry& registry, Isa isa) {
  Add<MakeBinaryMapper>(registry, "binary_mapper", isa);
  Add<MakeBinaryMapperGrad>(registry, "binary_mapper_grad", isa);
}

}  // namespace ft::cpu
