// attention and attention_grad, and both with q, k and v side by side in one tensor: cuDNN's fused kernels
// where it has them, else our own, where the user has chosen it or there is no other choice. Both keep the
// same statistics, so a forward kernel of one goes with a gradient of the other.
#include <string>
#include <string_view>

#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/base/cuda_workspace.h"
#include "runtime/kernels/attention/cuda_device.h"
#include "runtime/kernels/attention/operands.h"

namespace ft::cuda {
namespace {

// What the kernels are told; refuses what their indices cannot reach.
absl::StatusOr<AttentionShape> ShapeOf(const AttentionHeads& heads) {
  // Indices of rows, and of elements in a tile, are 32 bits wide.
  constexpr int64_t kLimit = int64_t{1} << 30;
  if (heads.rows() > kLimit || 128 * heads.q_stride > kLimit) {
    return absl::InvalidArgumentError(fmt::format("attention of {} positions and {} heads of {} is too large",
                                                  heads.batch * heads.positions, heads.heads, heads.size));
  }
  return AttentionShape{static_cast<int>(heads.batch),
                        static_cast<int>(heads.positions),
                        static_cast<int>(heads.heads),
                        static_cast<int>(heads.kv_heads),
                        static_cast<int>(heads.size),
                        static_cast<int>(heads.q_stride),
                        static_cast<int>(heads.kv_stride),
                        static_cast<int>(heads.span.before),
                        static_cast<int>(heads.span.after),
                        heads.scale,
                        heads.softcap,
                        heads.alibi ? static_cast<int>(AlibiHeads(heads.heads)) : 0,
                        heads.q.dtype};
}

// `segments`: scratch for where they begin and end.
AttentionOptions OptionsOf(const AttentionHeads& heads, void* segments) {
  const DropoutRule& dropout = heads.dropout;
  return {.lengths = heads.lengths,
          .ids = heads.segments,
          .segments = heads.segments == nullptr ? nullptr : static_cast<SegmentBounds*>(segments),
          .rng = dropout.rng,
          .stream = dropout.stream,
          .threshold = dropout.threshold,
          .factor = dropout.factor};
}

AttentionSpec SpecOf(const AttentionHeads& heads) {
  return {.batch = heads.batch,
          .positions = heads.positions,
          .heads = heads.heads,
          .kv_heads = heads.kv_heads,
          .head_size = heads.size,
          .causal = heads.causal,
          .scale = heads.scale,
          .dtype = heads.q.dtype,
          .side_by_side = heads.q_stride != heads.heads * heads.size,
          .window = heads.span.before < heads.positions ? heads.span.before : 0,
          .softcap = heads.softcap,
          .alibi = heads.alibi,
          .lengths = heads.lengths != nullptr,
          .segments = heads.segments != nullptr,
          .dropout = heads.dropout.rng != nullptr};
}

// "attention 64x1024, 12 heads of 64", with what sets it apart from others of that size.
std::string Describe(const AttentionSpec& s, bool gradient) {
  std::string text = fmt::format("attention{} {}x{}, {} heads of {}", gradient ? " gradient" : "", s.batch,
                                 s.positions, s.heads, s.head_size);
  if (s.kv_heads != s.heads) text += fmt::format(" on {}", s.kv_heads);
  if (!s.causal) text += ", not causal";
  if (s.window > 0) text += fmt::format(", window {}", s.window);
  if (s.softcap > 0.0f) text += fmt::format(", softcap {}", s.softcap);
  if (s.alibi) text += ", alibi";
  if (s.lengths) text += ", lengths";
  if (s.segments) text += ", segments";
  if (s.dropout) text += ", dropout";
  return text + fmt::format(", {}", Name(s.dtype));
}

// How our own kernels compare with cuDNN's of 16-bit operands.
constexpr char kCost[] = "takes longer than cuDNN's kernels";

// What becomes of a 16-bit shape that the library refuses where it may choose itself. Without an error our
// own kernel computes it.
absl::Status TakeRefused(const KernelContext& context, const std::string& what, std::string_view reason) {
  if (context.attention == nullptr) {
    context.Note(fmt::format("{}: own kernel, there is no cuDNN here", what));
    return absl::OkStatus();
  }
  if (context.deterministic) {
    context.Note(
        fmt::format("{}: own kernel, which {}; cuDNN has none that gives the same bits every time ({}), "
                    "--deterministic=off lets it take others",
                    what, kCost, reason));
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(fmt::format(
      "cuDNN refuses {}: {}; --attention=own computes it with our own kernel, which {}; cuDNN takes heads of "
      "a multiple of 8 elements, up to 128 (256 on some GPUs), and a newer one perhaps this shape too",
      what, reason, kCost));
}

// The library's kernel, or null for our own; `ask` asks the library. Notes the choice. An error where the
// user wants the library's and it has none, or has left the choice to us and nothing that is as fast is
// there.
template <typename Ask>
auto Choose(const KernelContext& context, const AttentionSpec& spec, bool gradient, Ask ask)
    -> decltype(ask(*context.attention)) {
  const std::string what = Describe(spec, gradient);
  if (context.attention_choice == AttentionChoice::kOwn) {
    context.Note(what + ": own kernel");
    return nullptr;
  }
  const bool is_16_bit = spec.dtype != DType::kF32;
  absl::Status refused = absl::UnimplementedError("it is not loaded");
  if (context.attention != nullptr && !is_16_bit) {
    refused = absl::UnimplementedError("it has none for f32");
  } else if (context.attention != nullptr) {
    auto fused = ask(*context.attention);
    if (fused.ok()) {
      context.Note(what + ": cuDNN");
      return fused;
    }
    refused = fused.status();
    // Anything else is trouble that our own kernel would meet as well.
    if (refused.code() != absl::StatusCode::kUnimplemented) return refused;
  }
  if (context.attention_choice == AttentionChoice::kCudnn)
    return absl::InvalidArgumentError(
        fmt::format("cuDNN refuses {}: {}", what, std::string(refused.message())));
  if (is_16_bit) {
    FT_RETURN_IF_ERROR(TakeRefused(context, what, std::string(refused.message())));
  } else {
    context.Note(fmt::format("{}: own kernel, cuDNN refuses it: {}", what, std::string(refused.message())));
  }
  return nullptr;
}

// Our own kernels keep tiles in shared memory, of which a small GPU has too little for large heads.
absl::Status CheckShared(const KernelContext& context, const AttentionSpec& spec, bool gradient) {
  const int size = static_cast<int>(spec.head_size);
  const size_t wanted =
      gradient ? AttentionGradSharedBytes(size, spec.dtype) : AttentionSharedBytes(size, spec.dtype);
  const size_t there = context.properties.shared_bytes_per_block;
  if (wanted <= there) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("our own kernel of {} wants {} bytes of shared memory for a block, this GPU has {}: train "
                  "in bf16 or fp16 "
                  "with cuDNN, or on a larger GPU",
                  Describe(spec, gradient), wanted, there));
}

template <AttentionInputs kInputs>
KernelOr MakeAttention(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const AttentionForward operands,
                      ReadAttention(context.operands, context.attributes, kInputs));
  const AttentionHeads& heads = operands.heads;
  FT_ASSIGN_OR_RETURN(const AttentionShape shape, ShapeOf(heads));
  const AttentionSpec spec = SpecOf(heads);
  const int64_t bytes = cuda_workspace::Attention(heads.sizes());
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, bytes));
  const AttentionArgs args = {heads.q.data,
                              heads.k.data,
                              heads.v.data,
                              operands.out.data,
                              operands.lse.as<float>(),
                              shape,
                              OptionsOf(heads, context.operands.workspace.data)};
  FT_ASSIGN_OR_RETURN(
      std::shared_ptr<FusedAttentionForward> fused,
      Choose(context, spec, false, [&](FusedAttention& library) { return library.Forward(spec, bytes); }));
  if (fused == nullptr) {
    FT_RETURN_IF_ERROR(CheckShared(context, spec, false));
    return MakeKernel([=](StreamHandle stream) { return Attention(args, stream); });
  }
  const AttentionForwardArgs fused_args = {args.q,   args.k,   args.v,
                                           args.out, args.lse, context.operands.workspace.data};
  return MakeKernel([=](StreamHandle stream) { return fused->Launch(fused_args, stream); });
}

template <AttentionInputs kInputs>
KernelOr MakeAttentionGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const AttentionBackward operands,
                      ReadAttentionGrad(context.operands, context.attributes, kInputs));
  const AttentionHeads &heads = operands.heads, &gradients = operands.gradients;
  FT_ASSIGN_OR_RETURN(const AttentionShape shape, ShapeOf(heads));
  const AttentionSpec spec = SpecOf(heads);
  const AttentionSizes sizes = heads.sizes();
  const int64_t bytes = cuda_workspace::AttentionGrad(sizes);
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, bytes));
  char* const workspace = context.operands.workspace.as<char>();
  const AttentionGradArgs args = {heads.q.data,
                                  heads.k.data,
                                  heads.v.data,
                                  operands.out.data,
                                  operands.dout.data,
                                  operands.lse.as<float>(),
                                  reinterpret_cast<float*>(workspace + cuda_workspace::OwnAttention(sizes)),
                                  gradients.q.data,
                                  gradients.k.data,
                                  gradients.v.data,
                                  shape,
                                  OptionsOf(heads, workspace)};
  FT_ASSIGN_OR_RETURN(
      std::shared_ptr<FusedAttentionBackward> fused,
      Choose(context, spec, true, [&](FusedAttention& library) { return library.Backward(spec, bytes); }));
  if (fused == nullptr) {
    FT_RETURN_IF_ERROR(CheckShared(context, spec, true));
    return MakeKernel([=](StreamHandle stream) { return AttentionGrad(args, stream); });
  }
  const AttentionBackwardArgs fused_args = {args.q,   args.k,  args.v,  args.out, args.dout,
                                            args.lse, args.dq, args.dk, args.dv,  workspace};
  return MakeKernel([=](StreamHandle stream) { return fused->Launch(fused_args, stream); });
}

}  // namespace

void RegisterAttention(KernelTable& table) {
  using enum AttentionInputs;
  table.Add("attention", MakeAttention<kSeparate>);
  table.Add("attention_grad", MakeAttentionGrad<kSeparate>);
  table.Add("qkv_attention", MakeAttention<kSideBySide>);
  table.Add("qkv_attention_grad", MakeAttentionGrad<kSideBySide>);
}

}  // namespace ft::cuda
