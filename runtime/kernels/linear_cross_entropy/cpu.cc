// linear_cross_entropy, its gradients, and both at once. The logits exist for a chunk of rows at a time, in
// f32.
#include <algorithm>
#include <array>

#include "runtime/backends/cpu/gemm.h"
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/base/workspace.h"
#include "runtime/kernels/linear_cross_entropy/cpu_loops.h"
#include "runtime/kernels/linear_cross_entropy/operands.h"

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

absl::StatusOr<Problem> ProblemOf(const KernelContext& context, const LinearCrossEntropyOperands& read) {
  const int64_t rows = read.x.rows(), vocabulary = read.weight.rows(), width = read.x.last();
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, LinearCrossEntropyWorkspace(rows, vocabulary)));
  const int64_t chunk = LinearCrossEntropyChunkRows(rows, vocabulary);
  float* logits = context.operands.workspace.as<float>();
  const auto rows_of = [width](const Tensor& tensor) { return Rows{tensor.as<char>(), tensor.dtype, width}; };
  const Problem problem{rows_of(read.x),
                        rows_of(read.weight),
                        read.targets,
                        logits,
                        logits + chunk * vocabulary,
                        rows_of(read.dx),
                        rows_of(read.dweight),
                        rows,
                        width,
                        vocabulary,
                        chunk,
                        read.accumulate,
                        context.num_threads};
  if (problem.gradients() && problem.weight_apart() && rows > chunk * vocabulary) {
    return absl::InvalidArgumentError(
        "x has more rows than the workspace has room for one column of their logits");
  }
  return problem;
}

GemmInput In(const Rows& rows, int64_t row) { return {rows.At(row), rows.dtype}; }
GemmOutput Out(const Rows& rows, int64_t row) { return {rows.At(row), rows.dtype}; }

// Rows whose losses are summed at once, at most.
constexpr int64_t kLossGroup = 4096;

// Adds the losses of n rows, at most kLossGroup, with these logits, the targets from row `begin` on. With
// gradients the logits become scale * (softmax - onehot).
void RowLosses(const Loops& loops, const Problem& p, float* logits, int64_t begin, int64_t n, float scale,
               double& total) {
  std::array<float, kLossGroup> losses;
  ParallelFor(n, ThreadsFor(p.num_threads, n * p.vocabulary), [&](int64_t i) {
    float* row = logits + i * p.vocabulary;
    const int64_t target = p.targets[begin + i];
    const bool inside = target >= 0 && target < p.vocabulary;
    const double at_target = inside ? row[target] : 0.0;
    const double loss = p.gradients() ? loops.loss.row_loss_grad(row, p.vocabulary, target, scale)
                                      : loops.loss.row_loss(row, p.vocabulary, target);
    losses[i] = static_cast<float>(loss);
    if (p.weight_apart()) p.log_sums[begin + i] = static_cast<float>(loss + at_target);
  });
  for (int64_t i = 0; i < n; ++i) total += losses[i];
}

// Adds the losses of rows [begin, begin + n) to `total`; with gradients makes their part of dx and dweight.
void RunChunk(const Loops& loops, const Problem& p, int64_t begin, int64_t n, float scale, double& total) {
  Gemm(loops, {.m = n, .n = p.vocabulary, .k = p.width, .transpose_b = true}, In(p.x, begin), In(p.weight, 0),
       nullptr, p.logits, p.num_threads);
  for (int64_t i = 0; i < n; i += kLossGroup) {
    RowLosses(loops, p, p.logits + i * p.vocabulary, begin + i, std::min(kLossGroup, n - i), scale, total);
  }
  if (!p.gradients()) return;
  Gemm(loops, {.m = n, .n = p.width, .k = p.vocabulary}, p.logits, In(p.weight, 0), nullptr, Out(p.dx, begin),
       p.num_threads);
  if (p.weight_apart()) return;
  Gemm(
      loops,
      {.m = p.vocabulary, .n = p.width, .k = n, .transpose_a = true, .accumulate = p.accumulate || begin > 0},
      p.logits, In(p.x, begin), nullptr, Out(p.dweight, 0), p.num_threads);
}

// dweight by columns of the logits, of all rows at once: the logits are computed a second time.
void WeightApart(const Loops& loops, const Problem& p, float scale) {
  const int64_t fit = p.chunk * p.vocabulary / p.rows;
  const int64_t columns = fit < 32 ? fit : fit / 32 * 32;
  for (int64_t begin = 0; begin < p.vocabulary; begin += columns) {
    const int64_t n = std::min(columns, p.vocabulary - begin);
    Gemm(loops, {.m = p.rows, .n = n, .k = p.width, .transpose_b = true}, In(p.x, 0), In(p.weight, begin),
         nullptr, p.logits, p.num_threads);
    ParallelFor(p.rows, ThreadsFor(p.num_threads, p.rows * n), [&](int64_t i) {
      loops.loss.partial_grad(p.logits + i * n, begin, n, p.targets[i], p.log_sums[i], scale);
    });
    Gemm(loops, {.m = n, .n = p.width, .k = p.rows, .transpose_a = true, .accumulate = p.accumulate},
         p.logits, In(p.x, 0), nullptr, Out(p.dweight, begin), p.num_threads);
  }
}

// The mean over the rows that count, 0 when none does; `dloss` is the upstream gradient.
float RunAll(const Loops& loops, const Problem& p, float dloss) {
  const int64_t counted =
      std::count_if(p.targets, p.targets + p.rows, [](int32_t target) { return target >= 0; });
  const float scale = dloss / static_cast<float>(std::max<int64_t>(counted, 1));
  double total = 0.0;
  for (int64_t begin = 0; begin < p.rows; begin += p.chunk) {
    RunChunk(loops, p, begin, std::min(p.chunk, p.rows - begin), scale, total);
  }
  if (p.gradients() && p.weight_apart()) WeightApart(loops, p, scale);
  return counted == 0 ? 0.0f : static_cast<float>(total / static_cast<double>(counted));
}

KernelOr MakeAll(const KernelContext& context, const LinearCrossEntropyOperands& read) {
  FT_ASSIGN_OR_RETURN(const Problem problem, ProblemOf(context, read));
  return MakeKernel(
      [problem, &loops = context.loops, loss = read.loss, dloss = read.dloss, factor = read.factor] {
        const float mean = RunAll(loops, problem, factor == nullptr ? dloss : dloss * *factor);
        if (loss != nullptr) *loss = mean;
      });
}

KernelOr MakeLoss(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const LinearCrossEntropyOperands read, ReadLinearCrossEntropy(context.operands));
  return MakeAll(context, read);
}

KernelOr MakeGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const LinearCrossEntropyOperands read, ReadLinearCrossEntropyGrad(context.operands));
  return MakeAll(context, read);
}

KernelOr MakeLossGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const LinearCrossEntropyOperands read,
                      ReadLinearCrossEntropyLossGrad(context.operands, context.attributes));
  return MakeAll(context, read);
}

}  // namespace

void RegisterLinearCrossEntropy(KernelRegistry& registry, Isa isa) {
  Add<MakeLoss>(registry, "linear_cross_entropy", isa);
  Add<MakeGrad>(registry, "linear_cross_entropy_grad", isa);
  Add<MakeLossGrad>(registry, "linear_cross_entropy_loss_grad", isa);
}

}  // namespace ft::cpu
