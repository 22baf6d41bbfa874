// attention and attention_grad.
#include "runtime/backends/cpu/routines/attention.h"

#include <cmath>

#include "fmt/format.h"
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/base/workspace.h"

namespace ft::cpu {
namespace {

struct Shape {
  AttentionArgs args;
  int type;  // FloatIndex of q, k and v
  int64_t batch;
  int64_t work;  // multiply-adds of the two products, not halved for causal
};

// Checks q, k, v at operands first, first + 1, first + 2 and reads the attributes; leaves out and lse to the
// caller.
absl::StatusOr<Shape> CheckInputs(const KernelContext& context, size_t first) {
  const Tensor &q = context.in(first), &k = context.in(first + 1), &v = context.in(first + 2);
  FT_RETURN_IF_ERROR(CheckFloat(q, "q"));
  FT_RETURN_IF_ERROR(CheckPresent(k, "k", q.dtype));
  FT_RETURN_IF_ERROR(CheckSameShape(v, "v", k));
  FT_ASSIGN_OR_RETURN(const int64_t heads, context.attributes.Int("heads"));
  FT_ASSIGN_OR_RETURN(const int64_t kv_heads, context.attributes.Int("kv_heads"));
  FT_ASSIGN_OR_RETURN(const bool causal, Flag(context.attributes, "causal"));
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0) {
    return absl::InvalidArgumentError(
        fmt::format("heads must be a multiple of kv_heads, got {} and {}", heads, kv_heads));
  }
  if (q.rank != 3 || k.rank != 3 || q.last() % heads != 0 || k.last() != q.last() / heads * kv_heads ||
      q.dims[0] != k.dims[0] || q.dims[1] != k.dims[1]) {
    return absl::InvalidArgumentError("q must be [B, T, heads * S], k and v [B, T, kv_heads * S]");
  }
  const int64_t size = q.last() / heads;
  if (size > kMaxHeadSize) {
    return absl::InvalidArgumentError(fmt::format("head size {} is above {}", size, kMaxHeadSize));
  }
  const AttentionArgs args = {
      q.data,    k.data, v.data,   nullptr, nullptr,
      q.dims[1], heads,  kv_heads, size,    static_cast<float>(1.0 / std::sqrt(static_cast<double>(size))),
      causal};
  return Shape{args, FloatIndex(q.dtype), q.dims[0], 2 * q.elements() * q.dims[1]};
}

KernelOr MakeAttention(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, 2));
  FT_ASSIGN_OR_RETURN(Shape shape, CheckInputs(context, 0));
  AttentionArgs& args = shape.args;
  FT_RETURN_IF_ERROR(CheckSameShape(context.out(0), "out", context.in(0)));
  FT_RETURN_IF_ERROR(CheckSize(context.out(1), "lse", shape.batch * args.heads * args.positions));
  args.out = context.out(0).data;
  args.lse = context.out(1).as<float>();
  const int64_t tile = AttentionTile(args.head_size), tiles = (args.positions + tile - 1) / tile;
  const int threads = ThreadsFor(context.num_threads, shape.work / 8);
  return MakeKernel([=, forward = context.routines.attention.forward[shape.type], args = args] {
    ParallelForUneven(shape.batch * args.heads * tiles, threads, [&](int64_t i) {
      forward(args, i / tiles / args.heads, i / tiles % args.heads, tiles - 1 - i % tiles);
    });
  });
}

KernelOr MakeAttentionGrad(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 6, 3));
  FT_ASSIGN_OR_RETURN(Shape shape, CheckInputs(context, 1));
  AttentionArgs& forward = shape.args;
  const int64_t rows = shape.batch * forward.heads * forward.positions;
  FT_RETURN_IF_ERROR(CheckSameShape(context.in(0), "dout", context.in(1)));
  FT_RETURN_IF_ERROR(CheckSameShape(context.in(4), "out", context.in(1)));
  FT_RETURN_IF_ERROR(CheckSize(context.in(5), "lse", rows));
  FT_RETURN_IF_ERROR(CheckSameShape(context.out(0), "dq", context.in(1)));
  FT_RETURN_IF_ERROR(CheckSameShape(context.out(1), "dk", context.in(2)));
  FT_RETURN_IF_ERROR(CheckSameShape(context.out(2), "dv", context.in(3)));
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands,
                                    AttentionGradWorkspace(shape.batch, forward.heads, forward.positions)));
  forward.out = context.in(4).data;
  forward.lse = context.in(5).as<float>();
  const AttentionGradArgs args = {forward,
                                  context.in(0).data,
                                  context.operands.workspace.as<float>(),
                                  context.out(0).data,
                                  context.out(1).data,
                                  context.out(2).data};
  const int threads = ThreadsFor(context.num_threads, shape.work / 8);
  const AttentionRoutines& routines = context.routines.attention;
  const int64_t tile = AttentionTile(forward.head_size), tiles = (forward.positions + tile - 1) / tile;
  return MakeKernel([=, row_sums = routines.row_sums[shape.type], backward = routines.backward[shape.type],
                     query_grad = routines.query_grad[shape.type], batch = shape.batch] {
    const int64_t heads = args.forward.heads, kv_heads = args.forward.kv_heads;
    ParallelFor(batch * heads, threads, [&](int64_t i) { row_sums(args, i / heads, i % heads); });
    ParallelForUneven(batch * kv_heads, threads,
                      [&](int64_t i) { backward(args, i / kv_heads, i % kv_heads); });
    if (query_grad == nullptr) return;
    ParallelForUneven(batch * heads * tiles, threads, [&](int64_t i) {
      query_grad(args, i / tiles / heads, i / tiles % heads, tiles - 1 - i % tiles);
    });
  });
}

}  // namespace

void RegisterAttention(KernelRegistry& registry, Isa isa) {
  Add<MakeAttention>(registry, "attention", isa);
  Add<MakeAttentionGrad>(registry, "attention_grad", isa);
}

}  // namespace ft::cpu
