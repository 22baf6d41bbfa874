// cross_entropy and cross_entropy_grad.
#include <algorithm>
#include <array>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/loss.h"
#include "runtime/backends/cpu/row_blocks.h"

namespace ft::cpu {
namespace {

// Rows that are not left out.
int64_t CountedRows(const int32_t* targets, int64_t rows) {
  return std::count_if(targets, targets + rows, [](int32_t target) { return target >= 0; });
}

KernelOr MakeCrossEntropy(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 2, 1));
  const Tensor &logits = context.in(0), &targets = context.in(1), &loss = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(logits, "logits"));
  const int64_t rows = logits.rows(), columns = logits.last();
  FT_RETURN_IF_ERROR(CheckSize(targets, "targets", rows, DType::kI32));
  FT_RETURN_IF_ERROR(CheckSize(loss, "loss", 1));
  const RowBlocks blocks(rows);
  const int threads = ThreadsFor(context.num_threads, logits.elements());
  const auto row_loss = context.routines.loss.row_loss[FloatIndex(logits.dtype)];
  const int64_t row_bytes = columns * static_cast<int64_t>(SizeOf(logits.dtype));
  return MakeKernel([=, x = logits.as<char>(), target = targets.as<int32_t>(), result = loss.as<float>()] {
    std::array<double, kReductionBlocks> sums{};
    ParallelFor(blocks.count, threads, [&](int64_t block) {
      for (int64_t row = blocks.Begin(block); row < blocks.Begin(block + 1); ++row) {
        sums[block] += row_loss(x + row * row_bytes, columns, target[row]);
      }
    });
    double total = 0.0;
    for (double sum : sums) total += sum;
    const int64_t counted = CountedRows(target, rows);
    *result = counted == 0 ? 0.0f : static_cast<float>(total / static_cast<double>(counted));
  });
}

KernelOr MakeCrossEntropyGrad(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, 1));
  const Tensor &dloss = context.in(0), &logits = context.in(1), &targets = context.in(2),
               &dlogits = context.out(0);
  FT_RETURN_IF_ERROR(CheckSize(dloss, "dloss", 1));
  FT_RETURN_IF_ERROR(CheckFloat(logits, "logits"));
  const int64_t rows = logits.rows(), columns = logits.last();
  FT_RETURN_IF_ERROR(CheckSize(targets, "targets", rows, DType::kI32));
  FT_RETURN_IF_ERROR(CheckSameShape(dlogits, "dlogits", logits));
  const int threads = ThreadsFor(context.num_threads, logits.elements());
  const auto row_loss_grad = context.routines.loss.row_loss_grad[FloatIndex(logits.dtype)];
  const int64_t row_bytes = columns * static_cast<int64_t>(SizeOf(logits.dtype));
  return MakeKernel([=, upstream = dloss.as<float>(), x = logits.as<char>(), target = targets.as<int32_t>(),
                     result = dlogits.as<char>()] {
    const float scale =
        *upstream / static_cast<float>(CountedRows(target, rows));  // of no use when there is none
    ParallelFor(rows, threads, [&](int64_t row) {
      row_loss_grad(x + row * row_bytes, columns, target[row], scale, result + row * row_bytes);
    });
  });
}

}  // namespace

void RegisterCrossEntropy(KernelRegistry& registry, Isa isa) {
  Add<MakeCrossEntropy>(registry, "cross_entropy", isa);
  Add<MakeCrossEntropyGrad>(registry, "cross_entropy_grad", isa);
}

}  // namespace ft::cpu
