// linear_cross_entropy, its gradients, and both at once. The logits exist for a chunk of rows at a time, in
// f32.
#include <algorithm>
#include <array>

#include "runtime/backends/cpu/gemm.h"
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/loss.h"
#include "runtime/base/workspace.h"

namespace ft::cpu {
namespace {

// Rows of elements in memory.
struct Rows {
  char* data;
  DType dtype;
  int64_t width;

  char* At(int64_t row) const { return data + row * width * static_cast<int64_t>(SizeOf(dtype)); }
};

struct Problem {
  Rows x;       // [rows, width]
  Rows weight;  // [vocabulary, width], of the type of x
  const int32_t* targets;
  float* logits;    // [chunk, vocabulary]
  float* log_sums;  // [rows]: of the exponentials of a row's logits, where dweight is made apart
  Rows dx;          // no data when there are no gradients
  Rows dweight;     // of any float type
  int64_t rows;
  int64_t width;
  int64_t vocabulary;
  int64_t chunk;
  bool accumulate;  // into dweight, from the first chunk on
  int num_threads;

  bool gradients() const { return dx.data != nullptr; }
  // A dweight of 16 bits is rounded once, so it cannot be the sum over several chunks of rows.
  bool weight_apart() const { return dweight.dtype != DType::kF32 && rows > chunk; }
};

// Operands x, weight, targets from `first` on, and the workspace.
absl::StatusOr<Problem> CheckInputs(const KernelContext& context, size_t first) {
  const Tensor &x = context.in(first), &weight = context.in(first + 1), &targets = context.in(first + 2);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckPresent(weight, "weight", x.dtype));
  const int64_t rows = x.rows(), vocabulary = weight.rows(), width = x.last();
  if (weight.last() != width)
    return absl::InvalidArgumentError("x and weight must agree in the last dimension");
  FT_RETURN_IF_ERROR(CheckSize(targets, "targets", rows, DType::kI32));
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, LinearCrossEntropyWorkspace(rows, vocabulary)));
  const int64_t chunk = LinearCrossEntropyChunkRows(rows, vocabulary);
  float* logits = context.operands.workspace.as<float>();
  return Problem{{x.as<char>(), x.dtype, width},
                 {weight.as<char>(), weight.dtype, width},
                 targets.as<int32_t>(),
                 logits,
                 logits + chunk * vocabulary,
                 {nullptr, DType::kF32, width},
                 {nullptr, DType::kF32, width},
                 rows,
                 width,
                 vocabulary,
                 chunk,
                 false,
                 context.num_threads};
}

absl::Status CheckGradients(const KernelContext& context, size_t first_in, const Tensor& acc,
                            const Tensor& dx, const Tensor& dweight, Problem& problem) {
  FT_RETURN_IF_ERROR(CheckSameShape(dx, "dx", context.in(first_in)));
  FT_RETURN_IF_ERROR(CheckFloat(dweight, "dweight"));
  Tensor like = context.in(first_in + 1);
  like.dtype = dweight.dtype;
  FT_RETURN_IF_ERROR(CheckSameShape(dweight, "dweight", like));
  if (acc.present()) FT_RETURN_IF_ERROR(CheckSameShape(acc, "acc", dweight));
  FT_RETURN_IF_ERROR(CheckAccumulator(acc, dweight));
  problem.dx = {dx.as<char>(), dx.dtype, problem.width};
  problem.dweight = {dweight.as<char>(), dweight.dtype, problem.width};
  problem.accumulate = acc.present();
  if (problem.weight_apart() && problem.rows > problem.chunk * problem.vocabulary) {
    return absl::InvalidArgumentError(
        "x has more rows than the workspace has room for one column of their logits");
  }
  return absl::OkStatus();
}

GemmInput In(const Rows& rows, int64_t row) { return {rows.At(row), rows.dtype}; }
GemmOutput Out(const Rows& rows, int64_t row) { return {rows.At(row), rows.dtype}; }

// Rows whose losses are summed at once, at most.
constexpr int64_t kLossGroup = 4096;

// Adds the losses of n rows, at most kLossGroup, with these logits, the targets from row `begin` on. With
// gradients the logits become scale * (softmax - onehot).
void RowLosses(const Routines& routines, const Problem& p, float* logits, int64_t begin, int64_t n,
               float scale, double& total) {
  const auto row_loss = routines.loss.row_loss[FloatIndex(DType::kF32)];
  const auto row_loss_grad = routines.loss.row_loss_grad[FloatIndex(DType::kF32)];
  std::array<float, kLossGroup> losses;
  ParallelFor(n, ThreadsFor(p.num_threads, n * p.vocabulary), [&](int64_t i) {
    float* row = logits + i * p.vocabulary;
    const int64_t target = p.targets[begin + i];
    const bool inside = target >= 0 && target < p.vocabulary;
    const double at_target = inside ? row[target] : 0.0;
    const double loss = p.gradients() ? row_loss_grad(row, p.vocabulary, target, scale, row)
                                      : row_loss(row, p.vocabulary, target);
    losses[i] = static_cast<float>(loss);
    if (p.weight_apart()) p.log_sums[begin + i] = static_cast<float>(loss + at_target);
  });
  for (int64_t i = 0; i < n; ++i) total += losses[i];
}

// Adds the losses of rows [begin, begin + n) to `total`; with gradients makes their part of dx and dweight.
void RunChunk(const Routines& routines, const Problem& p, int64_t begin, int64_t n, float scale,
              double& total) {
  Gemm(routines, {.m = n, .n = p.vocabulary, .k = p.width, .transpose_b = true}, In(p.x, begin),
       In(p.weight, 0), nullptr, p.logits, p.num_threads);
  for (int64_t i = 0; i < n; i += kLossGroup) {
    RowLosses(routines, p, p.logits + i * p.vocabulary, begin + i, std::min(kLossGroup, n - i), scale, total);
  }
  if (!p.gradients()) return;
  Gemm(routines, {.m = n, .n = p.width, .k = p.vocabulary}, p.logits, In(p.weight, 0), nullptr,
       Out(p.dx, begin), p.num_threads);
  if (p.weight_apart()) return;
  Gemm(
      routines,
      {.m = p.vocabulary, .n = p.width, .k = n, .transpose_a = true, .accumulate = p.accumulate || begin > 0},
      p.logits, In(p.x, begin), nullptr, Out(p.dweight, 0), p.num_threads);
}

// dweight by columns of the logits, of all rows at once: the logits are computed a second time.
void WeightApart(const Routines& routines, const Problem& p, float scale) {
  const int64_t fit = p.chunk * p.vocabulary / p.rows;
  const int64_t columns = fit < 32 ? fit : fit / 32 * 32;
  for (int64_t begin = 0; begin < p.vocabulary; begin += columns) {
    const int64_t n = std::min(columns, p.vocabulary - begin);
    Gemm(routines, {.m = p.rows, .n = n, .k = p.width, .transpose_b = true}, In(p.x, 0), In(p.weight, begin),
         nullptr, p.logits, p.num_threads);
    ParallelFor(p.rows, ThreadsFor(p.num_threads, p.rows * n), [&](int64_t i) {
      routines.loss.partial_grad(p.logits + i * n, begin, n, p.targets[i], p.log_sums[i], scale);
    });
    Gemm(routines, {.m = n, .n = p.width, .k = p.rows, .transpose_a = true, .accumulate = p.accumulate},
         p.logits, In(p.x, 0), nullptr, Out(p.dweight, begin), p.num_threads);
  }
}

// The mean over the rows that count, 0 when none does; `dloss` is the upstream gradient.
float RunAll(const Routines& routines, const Problem& p, float dloss) {
  const int64_t counted =
      std::count_if(p.targets, p.targets + p.rows, [](int32_t target) { return target >= 0; });
  const float scale = dloss / static_cast<float>(std::max<int64_t>(counted, 1));
  double total = 0.0;
  for (int64_t begin = 0; begin < p.rows; begin += p.chunk) {
    RunChunk(routines, p, begin, std::min(p.chunk, p.rows - begin), scale, total);
  }
  if (p.gradients() && p.weight_apart()) WeightApart(routines, p, scale);
  return counted == 0 ? 0.0f : static_cast<float>(total / static_cast<double>(counted));
}

KernelOr MakeLoss(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, 1));
  FT_ASSIGN_OR_RETURN(const Problem problem, CheckInputs(context, 0));
  FT_RETURN_IF_ERROR(CheckSize(context.out(0), "loss", 1));
  return MakeKernel([=, &routines = context.routines, loss = context.out(0).as<float>()] {
    *loss = RunAll(routines, problem, 0.0f);
  });
}

KernelOr MakeGrad(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 5, 2));
  FT_RETURN_IF_ERROR(CheckSize(context.in(0), "dloss", 1));
  FT_ASSIGN_OR_RETURN(Problem problem, CheckInputs(context, 1));
  FT_RETURN_IF_ERROR(CheckGradients(context, 1, context.in(4), context.out(0), context.out(1), problem));
  return MakeKernel([=, &routines = context.routines, dloss = context.in(0).as<float>()] {
    RunAll(routines, problem, *dloss);
  });
}

KernelOr MakeLossGrad(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 5, 3));
  FT_ASSIGN_OR_RETURN(Problem problem, CheckInputs(context, 0));
  FT_RETURN_IF_ERROR(CheckSize(context.out(0), "loss", 1));
  FT_RETURN_IF_ERROR(CheckGradients(context, 0, context.in(3), context.out(1), context.out(2), problem));
  FT_ASSIGN_OR_RETURN(const double dloss, FloatIn(context.attributes, "dloss"));
  const Tensor& dloss_scale = context.in(4);
  if (dloss_scale.present()) FT_RETURN_IF_ERROR(CheckSize(dloss_scale, "dloss_scale", 1));
  return MakeKernel([=, &routines = context.routines, loss = context.out(0).as<float>(),
                     dloss = static_cast<float>(dloss), factor = dloss_scale.as<float>()] {
    *loss = RunAll(routines, problem, factor == nullptr ? dloss : dloss * *factor);
  });
}

}  // namespace

void RegisterLinearCrossEntropy(KernelRegistry& registry, Isa isa) {
  Add<MakeLoss>(registry, "linear_cross_entropy", isa);
  Add<MakeGrad>(registry, "linear_cross_entropy_grad", isa);
  Add<MakeLossGrad>(registry, "linear_cross_entropy_loss_grad", isa);
}

}  // namespace ft::cpu
