// attention and attention_grad, and both with q, k and v side by side in one tensor.
#include <algorithm>
#include <vector>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/thread_scratch.h"
#include "runtime/base/checked.h"
#include "runtime/base/workspace.h"
#include "runtime/kernels/attention/cpu_dropout.h"
#include "runtime/kernels/attention/cpu_loops.h"
#include "runtime/kernels/attention/operands.h"

namespace ft::cpu {
namespace {

// Of all heads; empty where scores have no bias.
std::vector<float> SlopesOf(const AttentionHeads& heads) {
  std::vector<float> slopes(heads.alibi ? heads.heads : 0);
  for (size_t h = 0; h < slopes.size(); ++h)
    slopes[h] = static_cast<float>(AlibiSlope(static_cast<int64_t>(h), heads.heads));
  return slopes;
}

// Where the segments of a sequence begin and end.
void FindSegments(const int32_t* ids, int32_t positions, SegmentBounds* bounds) {
  for (int32_t begin = 0, end = 0; begin < positions; begin = end) {
    while (end < positions && ids[end] == ids[begin]) ++end;
    std::fill(bounds + begin, bounds + end, SegmentBounds{begin, end});
  }
}

// What forward and backward are told of attention, each time they run.
class Operands {
 public:
  // `segments`: scratch for where they begin and end.
  Operands(const AttentionHeads& heads, const Tensor& out, const Tensor& lse, void* segments)
      : heads_(heads),
        out_(out.data),
        lse_(lse.as<float>()),
        slopes_(SlopesOf(heads)),
        segments_(heads.segments == nullptr ? nullptr : static_cast<SegmentBounds*>(segments)) {}

  AttentionArgs ForRun(int threads) const {
    const AttentionHeads& h = heads_;
    if (segments_ != nullptr) {
      ParallelFor(h.batch, threads, [this, &h](int64_t b) {
        FindSegments(h.segments + b * h.positions, static_cast<int32_t>(h.positions),
                     segments_ + b * h.positions);
      });
    }
    return {.q = h.q.data,
            .k = h.k.data,
            .v = h.v.data,
            .out = out_,
            .lse = lse_,
            .positions = h.positions,
            .heads = h.heads,
            .kv_heads = h.kv_heads,
            .head_size = h.size,
            .q_stride = h.q_stride,
            .kv_stride = h.kv_stride,
            .span = h.span,
            .scale = h.scale,
            .softcap = h.softcap,
            .slopes = slopes_.empty() ? nullptr : slopes_.data(),
            .lengths = h.lengths,
            .segments = segments_,
            .dropout = h.dropout.rng == nullptr ? DropoutArgs{} : DropoutOf(h.dropout, h.probabilities())};
  }

 private:
  AttentionHeads heads_;
  void* out_;
  float* lse_;
  std::vector<float> slopes_;
  SegmentBounds* segments_;
};

int ThreadsOf(const KernelContext& context, const AttentionHeads& heads) {
  // Multiply-adds of the two products, not halved for causal, by eight.
  const int64_t keys = std::min(heads.positions, heads.span.before + heads.span.after - 1);
  return ThreadsFor(context.num_threads, CheckedMul(2, heads.q.elements(), keys) / 8);
}

int64_t Tiles(int64_t positions, int64_t size) { return (positions + size - 1) / size; }

template <AttentionInputs kInputs>
KernelOr MakeAttention(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const AttentionForward operands,
                      ReadAttention(context.operands, context.attributes, kInputs));
  const AttentionHeads& heads = operands.heads;
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, AttentionWorkspace(heads.sizes())));
  const Operands inputs(heads, operands.out, operands.lse, context.operands.workspace.data);
  const int threads = ThreadsOf(context, heads);
  return MakeKernel(
      [=, forward = context.loops.attention.forward[FloatIndex(heads.q.dtype)], batch = heads.batch] {
        const AttentionArgs args = inputs.ForRun(threads);
        const int64_t tiles = Tiles(args.positions, kAttentionTile), together = AttentionHeadsTogether(args);
        const int64_t groups = args.heads / together;
        ParallelForUneven(batch * groups * tiles, threads, [&](int64_t i) {
          forward(args, i / tiles / groups, i / tiles % groups * together, tiles - 1 - i % tiles,
                  ThreadScratch());
        });
      });
}

static_assert(kAttentionBlock == 128, "AttentionGradSequences counts pairs of blocks");

// The sums of 16-bit gradients lie in the workspace, behind `row_sums`.
AttentionSums SumsBeside(const AttentionHeads& heads, float* row_sums) {
  const int64_t rows = AttentionGradSequences(heads.batch, heads.positions, heads.kv_heads) * heads.positions;
  const int64_t q_width = heads.heads * heads.size, kv_width = heads.kv_heads * heads.size;
  float* dq = row_sums + (heads.rows() + 15) / 16 * 16;
  return {dq, dq + rows * q_width, dq + rows * (q_width + kv_width), q_width, kv_width};
}

// Pairs of a block of queries and a block of keys go by their distance, one distance after the other: then no
// two pairs at a time add to the same sum, and every sum is made in the same order, whatever the number of
// threads. A query that has no key block so far before it takes one behind it, counted round from the last.
// Blocks that are out of reach are left out.
template <typename F>
void ForPairs(int64_t blocks, const AttentionSpan& span, int64_t groups, int threads, const F& f) {
  // Whether the nearest query and key of blocks so far apart are.
  const auto reaches = [](int64_t distance, int64_t reach) {
    return (distance - 1) * kAttentionBlock + 1 < reach;
  };
  for (int64_t distance = 0; distance < blocks; ++distance) {
    const bool before = reaches(distance, span.before), behind = reaches(blocks - distance, span.after);
    // Those of the last queries have their keys before them.
    const int64_t begin = before ? 0 : blocks - distance, end = behind ? blocks : blocks - distance;
    const int64_t pairs = end - begin;
    ParallelForUneven(groups * pairs, threads, [&](int64_t i) {
      const int64_t query_block = blocks - 1 - begin - i % pairs;
      f(i / pairs, query_block, (query_block - distance + blocks) % blocks, distance == 0);
    });
  }
}

template <AttentionInputs kInputs>
KernelOr MakeAttentionGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const AttentionBackward operands,
                      ReadAttentionGrad(context.operands, context.attributes, kInputs));
  const AttentionHeads &heads = operands.heads, &gradients = operands.gradients;
  const bool narrow = heads.q.dtype != DType::kF32;
  const AttentionSizes sizes = heads.sizes();
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, AttentionGradWorkspace(sizes)));
  const Operands inputs(heads, operands.out, operands.lse, context.operands.workspace.data);
  float* row_sums =
      reinterpret_cast<float*>(context.operands.workspace.as<char>() + AttentionSegmentsWorkspace(sizes));
  const AttentionSums in_place = {gradients.q.as<float>(), gradients.k.as<float>(), gradients.v.as<float>(),
                                  heads.q_stride, heads.kv_stride};
  const AttentionGradArgs outputs = {{},
                                     operands.dout.data,
                                     row_sums,
                                     gradients.q.data,
                                     gradients.k.data,
                                     gradients.v.data,
                                     narrow ? SumsBeside(heads, row_sums) : in_place,
                                     0};
  const int threads = ThreadsOf(context, heads);
  const AttentionGradLoops& loops = context.loops.attention_grad;
  const int type = FloatIndex(heads.q.dtype);
  const int64_t sequences =
      narrow ? AttentionGradSequences(heads.batch, heads.positions, heads.kv_heads) : heads.batch;
  return MakeKernel([=, row_sums = loops.row_sums[type], backward = loops.backward[type],
                     store = loops.store[type], batch = heads.batch] {
    AttentionGradArgs args = outputs;
    args.forward = inputs.ForRun(threads);
    const int64_t all = args.forward.heads, kv_heads = args.forward.kv_heads;
    const int64_t blocks = Tiles(args.forward.positions, kAttentionBlock);
    ParallelFor(batch * all, threads, [&](int64_t i) { row_sums(args, i / all, i % all); });
    for (int64_t first = 0; first < batch; first += sequences) {
      const int64_t count = std::min(sequences, batch - first);
      args.first_batch = narrow ? first : 0;
      ForPairs(blocks, args.forward.span, count * kv_heads, threads,
               [&](int64_t group, int64_t queries, int64_t keys, bool set) {
                 backward(args, first + group / kv_heads, group % kv_heads, queries, keys, set,
                          ThreadScratch());
               });
      if (store == nullptr) continue;
      ParallelFor(count * blocks, threads, [&](int64_t i) { store(args, first + i / blocks, i % blocks); });
    }
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
