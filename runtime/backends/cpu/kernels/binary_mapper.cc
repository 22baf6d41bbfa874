// binary_mapper and binary_mapper_grad.
#include <cmath>

#include "fmt/format.h"
#include "runtime/backends/cpu/gemm.h"
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/latent.h"
#include "runtime/backends/cpu/routines/rows.h"
#include "runtime/base/workspace.h"

namespace ft::cpu {
namespace {

absl::Status CheckTable(const Tensor& table, const Tensor& logits) {
  FT_RETURN_IF_ERROR(CheckPresent(table, "table"));
  const int64_t bits = logits.last();
  if (bits >= 1 && bits <= kMaxBits && table.rows() == int64_t{1} << bits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("table must have 2^H rows for H logits, H at most {}, got {} and H = {}", kMaxBits,
                  table.rows(), bits));
}

KernelOr MakeBinaryMapper(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, 1));
  const Tensor &logits = context.in(0), &index = context.in(1), &table = context.in(2), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckPresent(logits, "logits"));
  FT_RETURN_IF_ERROR(CheckTable(table, logits));
  FT_RETURN_IF_ERROR(CheckSize(index, "index", logits.rows(), DType::kI32));
  FT_RETURN_IF_ERROR(CheckSize(r, "result", index.elements() * table.last()));
  const EmbeddingArgs args = {index.as<int32_t>(), table.as<float>(), r.as<float>(), table.rows(),
                              table.last()};
  return MakeRowwise(context.routines.rows.embedding, args, index.elements(), table.last(),
                     context.num_threads);
}

struct GradProblem {
  const float* dy;      // [rows, width]
  const float* logits;  // [rows, bits]
  const float* table;   // [2^bits, width]
  float* products;      // [row block, code block]
  float* dlogits;       // [rows, bits]
  int64_t rows;
  int64_t width;
  int bits;
};

// Adds one row's share of a block of codes: dl_h += sum_d g_d G_d (u_h(d) - s_h). `g` is its row of products.
void AddRow(const LatentRoutines& routines, const GradProblem& p, const float* g, int64_t row,
            int64_t block) {
  double probability[kMaxBits], sums[kMaxBits] = {};
  for (int h = 0; h < p.bits; ++h)
    probability[h] = 1.0 / (1.0 + std::exp(-double{p.logits[row * p.bits + h]}));
  const double total = routines.code_block(g, probability, p.bits, block, sums);
  float* dlogits = p.dlogits + row * p.bits;
  for (int h = 0; h < p.bits; ++h) {
    const float share = static_cast<float>(sums[h] - probability[h] * total);
    dlogits[h] = block == 0 ? share : dlogits[h] + share;
  }
}

KernelOr MakeBinaryMapperGrad(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, 1));
  const Tensor &dy = context.in(0), &logits = context.in(1), &table = context.in(2),
               &dlogits = context.out(0);
  FT_RETURN_IF_ERROR(CheckPresent(logits, "logits"));
  FT_RETURN_IF_ERROR(CheckTable(table, logits));
  FT_RETURN_IF_ERROR(CheckSize(dy, "dy", logits.rows() * table.last()));
  FT_RETURN_IF_ERROR(CheckSameShape(dlogits, "dlogits", logits));
  const int64_t rows = logits.rows(), bits = logits.last();
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, BinaryMapperGradWorkspace(rows, bits)));
  const GradProblem p = {dy.as<float>(),      logits.as<float>(),
                         table.as<float>(),   context.operands.workspace.as<float>(),
                         dlogits.as<float>(), rows,
                         table.last(),        static_cast<int>(bits)};
  const int64_t codes = BinaryMapperCodes(bits), block_rows = BinaryMapperRows(rows);
  const int64_t blocks = (int64_t{1} << bits) / codes;
  return MakeKernel([=, &routines = context.routines, num_threads = context.num_threads] {
    for (int64_t begin = 0; begin < rows; begin += block_rows) {
      const int64_t n = std::min(block_rows, rows - begin);
      for (int64_t block = 0; block < blocks; ++block) {
        Gemm(routines, {.m = n, .n = codes, .k = p.width, .transpose_b = true}, p.dy + begin * p.width,
             p.table + block * codes * p.width, nullptr, p.products, num_threads);
        ParallelFor(n, ThreadsFor(num_threads, n * codes),
                    [&](int64_t i) { AddRow(routines.latent, p, p.products + i * codes, begin + i, block); });
      }
    }
  });
}

}  // namespace

void RegisterBinaryMapper(KernelRegistry& registry, Isa isa) {
  Add<MakeBinaryMapper>(registry, "binary_mapper", isa);
  Add<MakeBinaryMapperGrad>(registry, "binary_mapper_grad", isa);
}

}  // namespace ft::cpu
