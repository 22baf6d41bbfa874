// cross_entropy, cross_entropy_grad and loss_count.
#include <algorithm>
#include <array>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/row_blocks.h"
#include "runtime/kernels/cross_entropy/cpu_loops.h"
#include "runtime/kernels/cross_entropy/operands.h"

namespace ft::cpu {
namespace {

// Rows that are not left out.
int64_t CountedRows(const int32_t* targets, int64_t rows) {
  return std::count_if(targets, targets + rows, [](int32_t target) { return target >= 0; });
}

KernelOr MakeCrossEntropy(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const CrossEntropyOperands read, ReadCrossEntropy(context.operands));
  const Tensor& logits = read.logits;
  const int64_t rows = logits.rows(), columns = logits.last();
  const RowBlocks blocks(rows);
  const int threads = ThreadsFor(context.num_threads, logits.elements());
  const auto row_loss = context.loops.loss.row_loss[FloatIndex(logits.dtype)];
  const int64_t row_bytes = columns * static_cast<int64_t>(SizeOf(logits.dtype));
  return MakeKernel([=, x = logits.as<char>(), target = read.targets, result = read.loss] {
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
  FT_ASSIGN_OR_RETURN(const CrossEntropyOperands read, ReadCrossEntropyGrad(context.operands));
  const Tensor& logits = read.logits;
  const int64_t rows = logits.rows(), columns = logits.last();
  const int threads = ThreadsFor(context.num_threads, logits.elements());
  const auto row_loss_grad = context.loops.loss.row_loss_grad[FloatIndex(logits.dtype)];
  const int64_t row_bytes = columns * static_cast<int64_t>(SizeOf(logits.dtype));
  return MakeKernel([=, upstream = read.dloss, x = logits.as<char>(), target = read.targets,
                     result = read.dlogits.as<char>()] {
    const float scale =
        *upstream / static_cast<float>(CountedRows(target, rows));  // of no use when there is none
    ParallelFor(rows, threads, [&](int64_t row) {
      row_loss_grad(x + row * row_bytes, columns, target[row], scale, result + row * row_bytes);
    });
  });
}

KernelOr MakeLossCount(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const LossCountOperands read, ReadLossCount(context.operands));
  return MakeKernel([read] {
    const int64_t n = CountedRows(read.targets.as<int32_t>(), read.targets.elements());
    read.sum[0] = static_cast<float>(double{*read.loss} * static_cast<double>(n));
    read.sum[1] = static_cast<float>(n);
  });
}

}  // namespace

void RegisterCrossEntropy(KernelRegistry& registry, Isa isa) {
  Add<MakeCrossEntropy>(registry, "cross_entropy", isa);
  Add<MakeCrossEntropyGrad>(registry, "cross_entropy_grad", isa);
  Add<MakeLossCount>(registry, "loss_count", isa);
}

}  // namespace ft::cpu
