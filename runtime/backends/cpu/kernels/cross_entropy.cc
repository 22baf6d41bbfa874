// cross_entropy and cross_entropy_grad.
#include <array>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/loss.h"
#include "runtime/backends/cpu/row_blocks.h"

namespace ft::cpu {
namespace {

KernelOr MakeCrossEntropy(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 2, 1));
  const Tensor &logits = context.in(0), &targets = context.in(1), &loss = context.out(0);
  FT_RETURN_IF_ERROR(CheckPresent(logits, "logits"));
  const int64_t rows = logits.rows(), columns = logits.last();
  FT_RETURN_IF_ERROR(CheckSize(targets, "targets", rows, DType::kI32));
  FT_RETURN_IF_ERROR(CheckSize(loss, "loss", 1));
  const RowBlocks blocks(rows);
  const int threads = ThreadsFor(context.num_threads, logits.elements());
  const auto row_loss = context.routines.loss.row_loss;
  return MakeKernel([=, x = logits.as<float>(), target = targets.as<int32_t>(), result = loss.as<float>()] {
    std::array<double, kReductionBlocks> sums{};
    ParallelFor(blocks.count, threads, [&](int64_t block) {
      for (int64_t row = blocks.Begin(block); row < blocks.Begin(block + 1); ++row) {
        sums[block] += row_loss(x + row * columns, columns, target[row]);
      }
    });
    double total = 0.0;
    for (double sum : sums) total += sum;
    *result = static_cast<float>(total / static_cast<double>(rows));
  });
}

KernelOr MakeCrossEntropyGrad(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, 1));
  const Tensor &dloss = context.in(0), &logits = context.in(1), &targets = context.in(2),
               &dlogits = context.out(0);
  FT_RETURN_IF_ERROR(CheckSize(dloss, "dloss", 1));
  FT_RETURN_IF_ERROR(CheckPresent(logits, "logits"));
  const int64_t rows = logits.rows(), columns = logits.last();
  FT_RETURN_IF_ERROR(CheckSize(targets, "targets", rows, DType::kI32));
  FT_RETURN_IF_ERROR(CheckSameShape(dlogits, "dlogits", logits));
  const int threads = ThreadsFor(context.num_threads, logits.elements());
  const auto row_loss_grad = context.routines.loss.row_loss_grad;
  return MakeKernel([=, upstream = dloss.as<float>(), x = logits.as<float>(), target = targets.as<int32_t>(),
                     result = dlogits.as<float>()] {
    const float scale = *upstream / static_cast<float>(rows);
    ParallelFor(rows, threads, [&](int64_t row) {
      row_loss_grad(x + row * columns, columns, target[row], scale, result + row * columns);
    });
  });
}

}  // namespace

void RegisterCrossEntropy(KernelRegistry& registry, Isa isa) {
  Add<MakeCrossEntropy>(registry, "cross_entropy", isa);
  Add<MakeCrossEntropyGrad>(registry, "cross_entropy_grad", isa);
}

}  // namespace ft::cpu
