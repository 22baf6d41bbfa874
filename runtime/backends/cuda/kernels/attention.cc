// attention and attention_grad: cuDNN's fused kernels where it has them, else our own. Both keep the same
// statistics, so a forward kernel of one goes with a gradient of the other.
#include "runtime/backends/cuda/routines/attention.h"

#include <algorithm>
#include <cmath>

#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/base/cuda_workspace.h"

namespace ft::cuda {
namespace {

// Checks q, k, v at operands first, first + 1, first + 2 and reads the attributes.
absl::StatusOr<AttentionShape> CheckInputs(const KernelContext& context, size_t first) {
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
  if (size < 1 || size > kMaxHeadSize) {
    return absl::InvalidArgumentError(fmt::format("head size must be 1 to {}, got {}", kMaxHeadSize, size));
  }
  // Indices of rows, and of elements in a tile, are 32 bits wide.
  constexpr int64_t kLimit = int64_t{1} << 30;
  if (q.rows() * heads > kLimit || 64 * q.last() > kLimit) {
    return absl::InvalidArgumentError(
        fmt::format("attention of {} positions and {} heads of {} is too large", q.rows(), heads, size));
  }
  return AttentionShape{static_cast<int>(q.dims[0]),
                        static_cast<int>(q.dims[1]),
                        static_cast<int>(heads),
                        static_cast<int>(kv_heads),
                        static_cast<int>(size),
                        causal,
                        static_cast<float>(1.0 / std::sqrt(static_cast<double>(size))),
                        q.dtype};
}

AttentionSpec SpecOf(const AttentionShape& s) {
  return {s.batch, s.positions, s.heads, s.kv_heads, s.head_size, s.causal, s.scale, s.dtype};
}

// "attention 64x1024, 12 heads of 64", with what sets it apart from others of that size.
std::string Describe(const AttentionShape& s, bool gradient) {
  std::string text = fmt::format("attention{} {}x{}, {} heads of {}", gradient ? " gradient" : "", s.batch,
                                 s.positions, s.heads, s.head_size);
  if (s.kv_heads != s.heads) text += fmt::format(" on {}", s.kv_heads);
  if (!s.causal) text += ", not causal";
  return text + fmt::format(", {}", Name(s.dtype));
}

void Note(const KernelContext& context, std::string line) {
  if (std::find(context.notes.begin(), context.notes.end(), line) == context.notes.end())
    context.notes.push_back(std::move(line));
}

// The library's kernel, or null for our own; `ask` asks the library. Notes the choice. An error where the
// user wants the library's and it has none.
template <typename Ask>
auto Choose(const KernelContext& context, const AttentionShape& shape, bool gradient, Ask ask)
    -> decltype(ask(*context.attention, AttentionSpec{})) {
  const std::string what = Describe(shape, gradient);
  if (context.attention_choice == AttentionChoice::kOwn) {
    Note(context, what + ": own kernel");
    return nullptr;
  }
  absl::Status refused = absl::UnimplementedError("it is not loaded");
  if (context.attention != nullptr && shape.dtype == DType::kF32) {
    refused = absl::UnimplementedError("it has none for f32");
  } else if (context.attention != nullptr) {
    auto fused = ask(*context.attention, SpecOf(shape));
    if (fused.ok()) {
      Note(context, what + ": cuDNN");
      return fused;
    }
    refused = fused.status();
    // Anything else is trouble that our own kernel would meet as well.
    if (refused.code() != absl::StatusCode::kUnimplemented) return refused;
  }
  if (context.attention_choice == AttentionChoice::kCudnn)
    return absl::InvalidArgumentError(
        fmt::format("cuDNN refuses {}: {}", what, std::string(refused.message())));
  Note(context, fmt::format("{}: own kernel, cuDNN refuses it: {}", what, std::string(refused.message())));
  return nullptr;
}

KernelOr MakeAttention(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, 2));
  FT_ASSIGN_OR_RETURN(const AttentionShape shape, CheckInputs(context, 0));
  FT_RETURN_IF_ERROR(CheckSameShape(context.out(0), "out", context.in(0)));
  FT_RETURN_IF_ERROR(CheckSize(context.out(1), "lse", int64_t{shape.batch} * shape.heads * shape.positions));
  const int64_t bytes = cuda_workspace::Attention(shape.batch, shape.positions, shape.heads, shape.kv_heads,
                                                  shape.head_size, shape.dtype);
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, bytes));
  const AttentionArgs args = {context.in(0).data,  context.in(1).data,         context.in(2).data,
                              context.out(0).data, context.out(1).as<float>(), shape};
  FT_ASSIGN_OR_RETURN(std::shared_ptr<FusedAttentionForward> fused,
                      Choose(context, shape, false, [&](FusedAttention& library, const AttentionSpec& spec) {
                        return library.Forward(spec, bytes);
                      }));
  if (fused == nullptr) return MakeKernel([=](StreamHandle stream) { return Attention(args, stream); });
  const AttentionForwardArgs fused_args = {args.q,   args.k,   args.v,
                                           args.out, args.lse, context.operands.workspace.data};
  return MakeKernel([=](StreamHandle stream) { return fused->Launch(fused_args, stream); });
}

KernelOr MakeAttentionGrad(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 6, 3));
  FT_ASSIGN_OR_RETURN(const AttentionShape shape, CheckInputs(context, 1));
  FT_RETURN_IF_ERROR(CheckSameShape(context.in(0), "dout", context.in(1)));
  FT_RETURN_IF_ERROR(CheckSameShape(context.in(4), "out", context.in(1)));
  FT_RETURN_IF_ERROR(CheckSize(context.in(5), "lse", int64_t{shape.batch} * shape.heads * shape.positions));
  FT_RETURN_IF_ERROR(CheckSameShape(context.out(0), "dq", context.in(1)));
  FT_RETURN_IF_ERROR(CheckSameShape(context.out(1), "dk", context.in(2)));
  FT_RETURN_IF_ERROR(CheckSameShape(context.out(2), "dv", context.in(3)));
  const int64_t bytes = cuda_workspace::AttentionGrad(shape.batch, shape.positions, shape.heads,
                                                      shape.kv_heads, shape.head_size, shape.dtype);
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, bytes));
  const AttentionGradArgs args = {context.in(1).data,
                                  context.in(2).data,
                                  context.in(3).data,
                                  context.in(4).data,
                                  context.in(0).data,
                                  context.in(5).as<float>(),
                                  context.operands.workspace.as<float>(),
                                  context.out(0).data,
                                  context.out(1).data,
                                  context.out(2).data,
                                  shape};
  FT_ASSIGN_OR_RETURN(std::shared_ptr<FusedAttentionBackward> fused,
                      Choose(context, shape, true, [&](FusedAttention& library, const AttentionSpec& spec) {
                        return library.Backward(spec, bytes);
                      }));
  if (fused == nullptr) return MakeKernel([=](StreamHandle stream) { return AttentionGrad(args, stream); });
  const AttentionBackwardArgs fused_args = {
      args.q,   args.k,  args.v,  args.out, args.dout,
      args.lse, args.dq, args.dk, args.dv,  context.operands.workspace.data};
  return MakeKernel([=](StreamHandle stream) { return fused->Launch(fused_args, stream); });
}

}  // namespace

void RegisterAttention(KernelTable& table) {
  table.Add("attention", MakeAttention);
  table.Add("attention_grad", MakeAttentionGrad);
}

}  // namespace ft::cuda
