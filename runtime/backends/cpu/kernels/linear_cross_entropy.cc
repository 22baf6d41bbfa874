// linear_cross_entropy, its gradients, and both at once. The logits exist for a chunk of rows at a time.
#include "runtime/backends/cpu/gemm.h"
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/loss.h"
#include "runtime/base/workspace.h"

namespace ft::cpu {
namespace {

struct Problem {
  const float* x;       // [rows, width]
  const float* weight;  // [vocabulary, width]
  const int32_t* targets;
  float* logits;      // [chunk, vocabulary]
  float* row_losses;  // [rows]
  float* dx;          // nullptr when there are no gradients
  float* dweight;
  int64_t rows;
  int64_t width;
  int64_t vocabulary;
  int64_t chunk;
  bool accumulate;  // into dweight, from the first chunk on
  int num_threads;
};

// Operands x, weight, targets from `first` on, and the workspace.
absl::StatusOr<Problem> CheckInputs(const KernelContext& context, size_t first) {
  const Tensor &x = context.in(first), &weight = context.in(first + 1), &targets = context.in(first + 2);
  FT_RETURN_IF_ERROR(CheckPresent(x, "x"));
  FT_RETURN_IF_ERROR(CheckPresent(weight, "weight"));
  const int64_t rows = x.rows(), vocabulary = weight.rows();
  if (weight.last() != x.last())
    return absl::InvalidArgumentError("x and weight must agree in the last dimension");
  FT_RETURN_IF_ERROR(CheckSize(targets, "targets", rows, DType::kI32));
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, LinearCrossEntropyWorkspace(rows, vocabulary)));
  const int64_t chunk = LinearCrossEntropyChunkRows(rows, vocabulary);
  float* logits = context.operands.workspace.as<float>();
  return Problem{x.as<float>(),
                 weight.as<float>(),
                 targets.as<int32_t>(),
                 logits,
                 logits + chunk * vocabulary,
                 nullptr,
                 nullptr,
                 rows,
                 x.last(),
                 vocabulary,
                 chunk,
                 false,
                 context.num_threads};
}

absl::Status CheckGradients(const KernelContext& context, size_t first_in, const Tensor& acc,
                            const Tensor& dx, const Tensor& dweight, Problem& problem) {
  FT_RETURN_IF_ERROR(CheckSameShape(dx, "dx", context.in(first_in)));
  FT_RETURN_IF_ERROR(CheckSameShape(dweight, "dweight", context.in(first_in + 1)));
  if (acc.present()) FT_RETURN_IF_ERROR(CheckSameShape(acc, "acc", dweight));
  FT_RETURN_IF_ERROR(CheckAccumulator(acc, dweight));
  problem.dx = dx.as<float>();
  problem.dweight = dweight.as<float>();
  problem.accumulate = acc.present();
  return absl::OkStatus();
}

// Losses of rows [begin, begin + n), and with gradients their part of dx and dweight; dlogits = scale * (p -
// onehot).
void RunChunk(const Routines& routines, const Problem& p, int64_t begin, int64_t n, float scale) {
  const float* x = p.x + begin * p.width;
  Gemm(routines, {.m = n, .n = p.vocabulary, .k = p.width, .transpose_b = true}, x, p.weight, nullptr,
       p.logits, p.num_threads);
  const bool gradients = p.dx != nullptr;
  ParallelFor(n, ThreadsFor(p.num_threads, n * p.vocabulary), [&](int64_t i) {
    float* logits = p.logits + i * p.vocabulary;
    const int64_t target = p.targets[begin + i];
    p.row_losses[begin + i] = static_cast<float>(
        gradients ? routines.loss.row_loss_grad(logits, p.vocabulary, target, scale, logits)
                  : routines.loss.row_loss(logits, p.vocabulary, target));
  });
  if (!gradients) return;
  Gemm(routines, {.m = n, .n = p.width, .k = p.vocabulary}, p.logits, p.weight, nullptr,
       p.dx + begin * p.width, p.num_threads);
  Gemm(
      routines,
      {.m = p.vocabulary, .n = p.width, .k = n, .transpose_a = true, .accumulate = p.accumulate || begin > 0},
      p.logits, x, nullptr, p.dweight, p.num_threads);
}

float RunAll(const Routines& routines, const Problem& p, float scale) {
  for (int64_t begin = 0; begin < p.rows; begin += p.chunk) {
    RunChunk(routines, p, begin, std::min(p.chunk, p.rows - begin), scale);
  }
  double total = 0.0;
  for (int64_t row = 0; row < p.rows; ++row) total += p.row_losses[row];
  return static_cast<float>(total / static_cast<double>(p.rows));
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
    RunAll(routines, problem, *dloss / static_cast<float>(problem.rows));
  });
}

KernelOr MakeLossGrad(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 4, 3));
  FT_ASSIGN_OR_RETURN(Problem problem, CheckInputs(context, 0));
  FT_RETURN_IF_ERROR(CheckSize(context.out(0), "loss", 1));
  FT_RETURN_IF_ERROR(CheckGradients(context, 0, context.in(3), context.out(1), context.out(2), problem));
  FT_ASSIGN_OR_RETURN(const double dloss, context.attributes.Float("dloss"));
  const float scale = static_cast<float>(dloss) / static_cast<float>(problem.rows);
  return MakeKernel([=, &routines = context.routines, loss = context.out(0).as<float>()] {
    *loss = RunAll(routines, problem, scale);
  });
}

}  // namespace

void RegisterLinearCrossEntropy(KernelRegistry& registry, Isa isa) {
  Add<MakeLoss>(registry, "linear_cross_entropy", isa);
  Add<MakeGrad>(registry, "linear_cross_entropy_grad", isa);
  Add<MakeLossGrad>(registry, "linear_cross_entropy_loss_grad", isa);
}

}  // namespace ft::cpu
