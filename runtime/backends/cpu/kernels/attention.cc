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
  int64_t batch;
  int64_t work;  // multiply-adds of the two products, not halved for causal
};

// Checks q, k, v at operands first, first + 1, first + 2 and reads the attributes; leaves out and lse to the
// caller.
absl::StatusOr<Shape> CheckInputs(const KernelContext& context, size_t first) {
  const Tensor &q = context.in(first), &k = context.in(first + 1), &v = context.in(first + 2);
  FT_RETURN_IF_ERROR(CheckPresent(q, "q"));
  FT_RETURN_IF_ERROR(CheckPresent(k, "k"));
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
  const AttentionArgs args = {q.as<float>(), k.as<float>(),
                              v.as<float>(), nullptr,
                              nullptr,       q.dims[1],
                              heads,         kv_heads,
                              size,          static_cast<float>(1.0 / std::sqrt(static_cast<double>(size))),
                              causal};
  return Shape{args, q.dims[0], 2 * q.elements() * q.dims[1]};
}

KernelOr MakeAttention(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, 2));
  FT_ASSIGN_OR_RETURN(Shape shape, CheckInputs(context, 0));
  AttentionArgs& args = shape.args;
  FT_RETURN_IF_ERROR(CheckSameShape(context.out(0), "out", context.in(0)));
  FT_RETURN_IF_ERROR(CheckSize(context.out(1), "lse", shape.batch * args.heads * args.positions));
  args.out = context.out(0).as<float>();
  args.lse = context.out(1).as<float>();
  const int64_t tile = AttentionTile(args.head_size), tiles = (args.positions + tile - 1) / tile;
  const int threads = ThreadsFor(context.num_threads, shape.work / 8);
  return MakeKernel([=, forward = context.routines.attention.forward, args = args] {
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
  forward.out = context.in(4).as<float>();
  forward.lse = context.in(5).as<float>();
  const AttentionGradArgs args = {forward,
                                  context.in(0).as<float>(),
                                  context.operands.workspace.as<float>(),
                                  context.out(0).as<float>(),
                                  context.out(1).as<float>(),
                                  context.out(2).as<float>()};
  const int threads = ThreadsFor(context.num_threads, shape.work / 8);
  return MakeKernel([=, &routines = context.routines.attention, batch = shape.batch] {
    ParallelFor(batch * args.forward.heads, threads,
                [&](int64_t i) { routines.row_sums(args, i / args.forward.heads, i % args.forward.heads); });
    ParallelForUneven(batch * args.forward.kv_heads, threads, [&](int64_t i) {
      routines.backward(args, i / args.forward.kv_heads, i % args.forward.kv_heads);
    });
  });
}

}  // namespace

void RegisterAttention(KernelRegistry& registry, Isa isa) {
  Add<MakeAttention>(registry, "attention", isa);
  Add<MakeAttentionGrad>(registry, "attention_grad", isa);
}

}  // namespace ft::cpu
