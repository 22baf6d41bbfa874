// attention and attention_grad, and both with q, k and v side by side in one tensor.
#include "runtime/backends/cpu/routines/attention.h"

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/base/workspace.h"
#include "runtime/device/attention_heads.h"

namespace ft::cpu {
namespace {

// All but out and lse.
AttentionArgs ArgsOf(const AttentionHeads& heads) {
  return {heads.q.data,    heads.k.data, heads.v.data,   nullptr,    nullptr,
          heads.positions, heads.heads,  heads.kv_heads, heads.size, heads.q_stride,
          heads.kv_stride, heads.scale,  heads.causal};
}

int ThreadsOf(const KernelContext& context, const AttentionHeads& heads) {
  // Multiply-adds of the two products, not halved for causal, by eight.
  return ThreadsFor(context.num_threads, 2 * heads.q.elements() * heads.positions / 8);
}

KernelOr MakeForward(const KernelContext& context, const AttentionHeads& heads) {
  FT_RETURN_IF_ERROR(CheckSameShape(context.out(0), "out", heads.q));
  FT_RETURN_IF_ERROR(CheckSize(context.out(1), "lse", heads.rows()));
  AttentionArgs args = ArgsOf(heads);
  args.out = context.out(0).data;
  args.lse = context.out(1).as<float>();
  const int64_t tile = AttentionTile(args.head_size), tiles = (args.positions + tile - 1) / tile;
  const int threads = ThreadsOf(context, heads);
  return MakeKernel(
      [=, forward = context.routines.attention.forward[FloatIndex(heads.q.dtype)], batch = heads.batch] {
        ParallelForUneven(batch * args.heads * tiles, threads, [&](int64_t i) {
          forward(args, i / tiles / args.heads, i / tiles % args.heads, tiles - 1 - i % tiles);
        });
      });
}

// `gradients`: dq, dk and dv, where q, k and v of the same strides would lie. dout is operand 0, out and lse
// follow the inputs.
KernelOr MakeBackward(const KernelContext& context, const AttentionHeads& heads,
                      const AttentionHeads& gradients, size_t inputs) {
  const Tensor &dout = context.in(0), &out = context.in(1 + inputs), &lse = context.in(2 + inputs);
  FT_RETURN_IF_ERROR(CheckSameShape(dout, "dout", heads.q));
  FT_RETURN_IF_ERROR(CheckSameShape(out, "out", heads.q));
  FT_RETURN_IF_ERROR(CheckSize(lse, "lse", heads.rows()));
  FT_RETURN_IF_ERROR(
      CheckWorkspace(context.operands, AttentionGradWorkspace(heads.batch, heads.heads, heads.positions)));
  AttentionArgs forward = ArgsOf(heads);
  forward.out = out.data;
  forward.lse = lse.as<float>();
  const AttentionGradArgs args = {forward,          dout.data,        context.operands.workspace.as<float>(),
                                  gradients.q.data, gradients.k.data, gradients.v.data};
  const int threads = ThreadsOf(context, heads);
  const AttentionRoutines& routines = context.routines.attention;
  const int type = FloatIndex(heads.q.dtype);
  const int64_t tile = AttentionTile(forward.head_size), tiles = (forward.positions + tile - 1) / tile;
  return MakeKernel([=, row_sums = routines.row_sums[type], backward = routines.backward[type],
                     query_grad = routines.query_grad[type], batch = heads.batch] {
    const int64_t all = args.forward.heads, kv_heads = args.forward.kv_heads;
    ParallelFor(batch * all, threads, [&](int64_t i) { row_sums(args, i / all, i % all); });
    ParallelForUneven(batch * kv_heads, threads,
                      [&](int64_t i) { backward(args, i / kv_heads, i % kv_heads); });
    if (query_grad == nullptr) return;
    ParallelForUneven(batch * all * tiles, threads, [&](int64_t i) {
      query_grad(args, i / tiles / all, i / tiles % all, tiles - 1 - i % tiles);
    });
  });
}

KernelOr MakeAttention(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, 2));
  FT_ASSIGN_OR_RETURN(const AttentionHeads heads,
                      CheckAttention(context.in(0), context.in(1), context.in(2), context.attributes));
  return MakeForward(context, heads);
}

KernelOr MakeAttentionGrad(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 6, 3));
  FT_ASSIGN_OR_RETURN(const AttentionHeads heads,
                      CheckAttention(context.in(1), context.in(2), context.in(3), context.attributes));
  FT_RETURN_IF_ERROR(CheckSameShape(context.out(0), "dq", heads.q));
  FT_RETURN_IF_ERROR(CheckSameShape(context.out(1), "dk", heads.k));
  FT_ASSIGN_OR_RETURN(const AttentionHeads gradients,
                      CheckAttention(context.out(0), context.out(1), context.out(2), context.attributes));
  return MakeBackward(context, heads, gradients, 3);
}

KernelOr MakeQkvAttention(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 2));
  FT_ASSIGN_OR_RETURN(const AttentionHeads heads, CheckQkvAttention(context.in(0), context.attributes));
  return MakeForward(context, heads);
}

KernelOr MakeQkvAttentionGrad(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 4, 1));
  FT_ASSIGN_OR_RETURN(const AttentionHeads heads, CheckQkvAttention(context.in(1), context.attributes));
  FT_RETURN_IF_ERROR(CheckSameShape(context.out(0), "dqkv", context.in(1)));
  FT_ASSIGN_OR_RETURN(const AttentionHeads gradients, CheckQkvAttention(context.out(0), context.attributes));
  return MakeBackward(context, heads, gradients, 1);
}

}  // namespace

void RegisterAttention(KernelRegistry& registry, Isa isa) {
  Add<MakeAttention>(registry, "attention", isa);
  Add<MakeAttentionGrad>(registry, "attention_grad", isa);
  Add<MakeQkvAttention>(registry, "qkv_attention", isa);
  Add<MakeQkvAttentionGrad>(registry, "qkv_attention_grad", isa);
}

}  // namespace ft::cpu
