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

template <AttentionInputs kInputs>
KernelOr MakeAttention(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const AttentionForward operands,
                      ReadAttention(context.operands, context.attributes, kInputs));
  const AttentionHeads& heads = operands.heads;
  AttentionArgs args = ArgsOf(heads);
  args.out = operands.out.data;
  args.lse = operands.lse.as<float>();
  const int64_t tile = AttentionTile(args.head_size), tiles = (args.positions + tile - 1) / tile;
  const int threads = ThreadsOf(context, heads);
  return MakeKernel(
      [=, forward = context.routines.attention.forward[FloatIndex(heads.q.dtype)], batch = heads.batch] {
        ParallelForUneven(batch * args.heads * tiles, threads, [&](int64_t i) {
          forward(args, i / tiles / args.heads, i / tiles % args.heads, tiles - 1 - i % tiles);
        });
      });
}

template <AttentionInputs kInputs>
KernelOr MakeAttentionGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const AttentionBackward operands,
                      ReadAttentionGrad(context.operands, context.attributes, kInputs));
  const AttentionHeads &heads = operands.heads, &gradients = operands.gradients;
  FT_RETURN_IF_ERROR(
      CheckWorkspace(context.operands, AttentionGradWorkspace(heads.batch, heads.heads, heads.positions)));
  AttentionArgs forward = ArgsOf(heads);
  forward.out = operands.out.data;
  forward.lse = operands.lse.as<float>();
  const AttentionGradArgs args = {
      forward,          operands.dout.data, context.operands.workspace.as<float>(),
      gradients.q.data, gradients.k.data,   gradients.v.data};
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

}  // namespace

void RegisterAttention(KernelRegistry& registry, Isa isa) {
  using enum AttentionInputs;
  Add<MakeAttention<kSeparate>>(registry, "attention", isa);
  Add<MakeAttentionGrad<kSeparate>>(registry, "attention_grad", isa);
  Add<MakeAttention<kSideBySide>>(registry, "qkv_attention", isa);
  Add<MakeAttentionGrad<kSideBySide>>(registry, "qkv_attention_grad", isa);
}

}  // namespace ft::cpu
