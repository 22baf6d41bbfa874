#include "runtime/kernels/linear_cross_entropy/cuda.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/base/cuda_workspace.h"
#include "runtime/kernels/linear_cross_entropy/cuda_device.h"
#include "runtime/kernels/linear_cross_entropy/operands.h"

namespace ft::cuda {
namespace {

using cuda_workspace::LinearCrossEntropyParts;

struct Problem {
  Tensor x;        // [rows, width]
  Tensor weight;   // [vocabulary, width], of the type of x
  Tensor dx;       // absent when there are no gradients
  Tensor dweight;  // of any float type
  LossScaleArgs scale;
  float* loss;      // null for none
  bool accumulate;  // into dweight
  LinearCrossEntropyParts parts;
  char* workspace;

  bool gradients() const { return dx.present(); }
  int64_t rows() const { return x.rows(); }
  int64_t width() const { return x.last(); }
  int64_t vocabulary() const { return weight.rows(); }
  // Where products for dx and dweight store.
  DType dx_dtype() const { return parts.narrow ? DType::kF32 : x.dtype; }
  DType dweight_dtype() const { return parts.weight_apart ? DType::kF32 : dweight.dtype; }
  void* dx_sums(int64_t row) const { return parts.narrow ? workspace + parts.dx : RowOf(dx, row); }
  void* dweight_sums(int64_t word) const {
    Tensor sums = dweight;
    sums.dtype = dweight_dtype();
    if (parts.weight_apart) sums.data = workspace + parts.dweight;
    return RowOf(sums, word);
  }
  void* product_workspace() const { return workspace + parts.product; }
  float* losses() const { return reinterpret_cast<float*>(workspace + parts.losses); }

  static void* RowOf(const Tensor& tensor, int64_t row) {
    return tensor.as<char>() + row * tensor.last() * static_cast<int64_t>(SizeOf(tensor.dtype));
  }
};

constexpr int64_t kMostChunks = 1 << 14;  // each of which is planned by itself

// A product of some words of the vocabulary.
struct Step {
  std::shared_ptr<Product> product;
  ProductOperands operands;
};
using Steps = std::vector<Step>;

// What is enqueued for some rows: the products, and between them the losses.
struct Chunk {
  int64_t begin, rows;
  RowLossArgs losses;
  Steps logits, dx, dweight;
};

struct Words {
  int64_t begin, count;
};

// The vocabulary as products take it: in whole pieces of 16 bytes, which cuBLASLt's fast kernels want however
// far rows are apart, and what is left. That comes first: where dx is rounded in between, it is little.
std::vector<Words> WordsOf(const Problem& p) {
  const int64_t piece = 16 / static_cast<int64_t>(SizeOf(p.x.dtype));
  const int64_t whole = p.vocabulary() / piece * piece;
  if (whole == 0 || whole == p.vocabulary()) return {{0, p.vocabulary()}};
  return {{whole, p.vocabulary() - whole}, {0, whole}};
}

absl::StatusOr<Problem> ProblemOf(const LinearCrossEntropyOperands& read) {
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max() - 65536;  // counted in 32 bits
  if (read.x.rows() > kLimit || read.weight.rows() > kLimit) {
    return absl::InvalidArgumentError(
        fmt::format("{} rows of {} logits are too many", read.x.rows(), read.weight.rows()));
  }
  Problem problem = {};
  problem.x = read.x;
  problem.weight = read.weight;
  problem.dx = read.dx;
  problem.dweight = read.dweight;
  problem.accumulate = read.accumulate;
  problem.loss = read.loss;
  problem.scale.targets = read.targets;
  problem.scale.rows = static_cast<int>(read.x.rows());
  problem.scale.dloss = read.dloss;
  problem.scale.factor = read.factor;
  return problem;
}

// Lays the workspace out, `chunk` rows at a time; 0 for what the shape says.
absl::Status PlaceParts(const KernelContext& context, int64_t chunk, Problem& p) {
  if (chunk == 0) chunk = cuda_workspace::LogitRows(p.rows(), p.vocabulary(), p.x.dtype);
  const DType gradient = p.gradients() ? p.dweight.dtype : p.x.dtype;
  p.parts = cuda_workspace::PartsOfLinearCrossEntropy(p.rows(), p.vocabulary(), p.width(), p.x.dtype,
                                                      p.gradients(), gradient, chunk);
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, p.parts.bytes));
  p.workspace = context.operands.workspace.as<char>();
  p.scale.narrow = p.parts.narrow;
  p.scale.result = reinterpret_cast<LossScale*>(p.workspace + p.parts.scale);
  return absl::OkStatus();
}

absl::Status AddStep(const KernelContext& context, const ProductSpec& spec, const ProductOperands& operands,
                     Steps& steps) {
  FT_ASSIGN_OR_RETURN(std::shared_ptr<Product> product,
                      context.products.Create(spec, operands, cuda_workspace::Matmul()));
  steps.push_back({std::move(product), operands});
  return absl::OkStatus();
}

// The products of these words for rows [begin, begin + rows) of x.
absl::Status AddSteps(const KernelContext& context, const Problem& p, const Words& words, Chunk& chunk) {
  const void* const x = Problem::RowOf(p.x, chunk.begin);
  const void* const weight = Problem::RowOf(p.weight, words.begin);
  void* const logits = p.workspace + words.begin * static_cast<int64_t>(SizeOf(p.x.dtype));
  const ProductSpec of_logits = {.m = chunk.rows,
                                 .n = words.count,
                                 .k = p.width(),
                                 .transpose_b = true,
                                 .row_a = p.width(),
                                 .row_b = p.width(),
                                 .row_c = p.parts.stride,
                                 .input = p.x.dtype,
                                 .output = p.x.dtype};
  FT_RETURN_IF_ERROR(AddStep(context, of_logits, {x, weight, logits, p.product_workspace()}, chunk.logits));
  if (!p.gradients()) return absl::OkStatus();
  const ProductSpec of_dx = {.m = chunk.rows,
                             .n = p.width(),
                             .k = words.count,
                             .row_a = p.parts.stride,
                             .row_b = p.width(),
                             .row_c = p.width(),
                             .input = p.x.dtype,
                             .output = p.dx_dtype(),
                             .accumulate = !chunk.dx.empty()};
  FT_RETURN_IF_ERROR(
      AddStep(context, of_dx, {logits, weight, p.dx_sums(chunk.begin), p.product_workspace()}, chunk.dx));
  const ProductSpec of_dweight = {.m = words.count,
                                  .n = p.width(),
                                  .k = chunk.rows,
                                  .transpose_a = true,
                                  .row_a = p.parts.stride,
                                  .row_b = p.width(),
                                  .row_c = p.width(),
                                  .input = p.x.dtype,
                                  .output = p.dweight_dtype(),
                                  .accumulate = chunk.begin > 0 || (p.accumulate && !p.parts.weight_apart)};
  return AddStep(context, of_dweight, {logits, x, p.dweight_sums(words.begin), p.product_workspace()},
                 chunk.dweight);
}

// Rows [begin, begin + rows). A later chunk's addresses are aligned as the first's: chunks are multiples of
// 256 rows.
absl::StatusOr<Chunk> MakeChunk(const KernelContext& context, const Problem& p, int64_t begin, int64_t rows) {
  Chunk chunk = {begin, rows, {}, {}, {}, {}};
  float* losses = p.loss == nullptr ? nullptr : p.losses() + begin;
  chunk.losses = {p.workspace,
                  p.x.dtype,
                  static_cast<int>(rows),
                  static_cast<int>(p.vocabulary()),
                  p.parts.stride,
                  p.scale.targets + begin,
                  losses,
                  p.gradients() ? p.workspace : nullptr,
                  p.scale.result};
  for (const Words& words : WordsOf(p)) FT_RETURN_IF_ERROR(AddSteps(context, p, words, chunk));
  return chunk;
}

int Launch(const Steps& steps, StreamHandle stream) {
  for (const Step& step : steps) {
    if (const int error = step.product->Launch(step.operands, stream); error != 0) return error;
  }
  return 0;
}

int LaunchChunk(const Problem& p, const Chunk& chunk, StreamHandle stream) {
  int error = Launch(chunk.logits, stream);
  if (error == 0) error = RowLosses(chunk.losses, stream);
  if (error != 0 || !p.gradients()) return error;
  error = Launch(chunk.dx, stream);
  if (error == 0 && p.parts.narrow) {
    error = FinishGradient({static_cast<float*>(p.dx_sums(chunk.begin)), chunk.rows * p.width(),
                            p.scale.result, false, Problem::RowOf(p.dx, chunk.begin), p.dx.dtype},
                           stream);
  }
  return error != 0 ? error : Launch(chunk.dweight, stream);
}

int LaunchAll(const Problem& p, const std::vector<Chunk>& chunks, StreamHandle stream) {
  if (const int error = FindLossScale(p.scale, stream); error != 0) return error;
  for (const Chunk& chunk : chunks) {
    if (const int error = LaunchChunk(p, chunk, stream); error != 0) return error;
  }
  if (p.gradients() && p.parts.weight_apart) {
    const int error = FinishGradient({static_cast<float*>(p.dweight_sums(0)), p.dweight.elements(),
                                      p.scale.result, p.accumulate, p.dweight.data, p.dweight.dtype},
                                     stream);
    if (error != 0) return error;
  }
  if (p.loss == nullptr) return 0;
  return MeanLoss(p.losses(), p.scale.rows, p.scale.result, p.loss, stream);
}

// `chunk_rows` rows at a time; 0 for what the shape says.
KernelOr MakeAll(const KernelContext& context, const LinearCrossEntropyOperands& read, int64_t chunk_rows) {
  FT_ASSIGN_OR_RETURN(Problem problem, ProblemOf(read));
  FT_RETURN_IF_ERROR(PlaceParts(context, chunk_rows, problem));
  if (problem.rows() / problem.parts.chunk > kMostChunks) {
    return absl::InvalidArgumentError(
        fmt::format("{} rows of {} logits are too many", problem.rows(), problem.vocabulary()));
  }
  std::vector<Chunk> chunks;
  for (int64_t begin = 0; begin < problem.rows(); begin += problem.parts.chunk) {
    const int64_t rows = std::min(problem.parts.chunk, problem.rows() - begin);
    FT_ASSIGN_OR_RETURN(Chunk chunk, MakeChunk(context, problem, begin, rows));
    chunks.push_back(std::move(chunk));
  }
  return MakeKernel([problem, chunks = std::move(chunks)](StreamHandle stream) {
    return LaunchAll(problem, chunks, stream);
  });
}

}  // namespace

KernelOr MakeLinearCrossEntropy(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const LinearCrossEntropyOperands read, ReadLinearCrossEntropy(context.operands));
  return MakeAll(context, read, 0);
}

KernelOr MakeLinearCrossEntropyGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const LinearCrossEntropyOperands read, ReadLinearCrossEntropyGrad(context.operands));
  return MakeAll(context, read, 0);
}

KernelOr MakeLinearCrossEntropyLossGrad(const KernelContext& context, int64_t chunk) {
  FT_ASSIGN_OR_RETURN(const LinearCrossEntropyOperands read,
                      ReadLinearCrossEntropyLossGrad(context.operands, context.attributes));
  return MakeAll(context, read, chunk);
}

KernelOr MakeLinearCrossEntropyLossGrad(const KernelContext& context) {
  return MakeLinearCrossEntropyLossGrad(context, 0);
}

void RegisterLinearCrossEntropy(KernelTable& table) {
  table.Add("linear_cross_entropy", MakeLinearCrossEntropy);
  table.Add("linear_cross_entropy_grad", MakeLinearCrossEntropyGrad);
  table.Add("linear_cross_entropy_loss_grad", MakeLinearCrossEntropyLossGrad);
}

}  // namespace ft::cuda
