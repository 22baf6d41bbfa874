#include "runtime/device/attention_heads.h"

#include <cmath>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

// heads, kv_heads and causal.
absl::StatusOr<AttentionHeads> ReadAttributes(const KernelAttributes& attributes) {
  AttentionHeads result;
  FT_ASSIGN_OR_RETURN(result.heads, IntIn(attributes, "heads", 1, kMaxHeads));
  FT_ASSIGN_OR_RETURN(result.kv_heads, IntIn(attributes, "kv_heads", 1, kMaxHeads));
  FT_ASSIGN_OR_RETURN(result.causal, Flag(attributes, "causal"));
  if (result.heads % result.kv_heads != 0) {
    return absl::InvalidArgumentError(
        fmt::format("heads must be a multiple of kv_heads, got {} and {}", result.heads, result.kv_heads));
  }
  return result;
}

absl::Status SetSize(int64_t size, AttentionHeads& heads) {
  if (size < 1 || size > kMaxHeadSize) {
    return absl::InvalidArgumentError(fmt::format("head size must be 1 to {}, got {}", kMaxHeadSize, size));
  }
  heads.size = size;
  heads.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(size)));
  return absl::OkStatus();
}

// `width` columns of `whole`, from column `begin` on.
Tensor Columns(const Tensor& whole, int64_t begin, int64_t width) {
  Tensor part = whole;
  part.data = whole.as<char>() + begin * static_cast<int64_t>(SizeOf(whole.dtype));
  part.dims[2] = width;
  return part;
}

// Of three tensors.
absl::StatusOr<AttentionHeads> CheckAttention(const Tensor& q, const Tensor& k, const Tensor& v,
                                              const KernelAttributes& attributes) {
  FT_RETURN_IF_ERROR(CheckFloat(q, "q"));
  FT_RETURN_IF_ERROR(CheckPresent(k, "k", q.dtype));
  FT_RETURN_IF_ERROR(CheckSameShape(v, "v", k));
  FT_ASSIGN_OR_RETURN(AttentionHeads heads, ReadAttributes(attributes));
  if (q.rank != 3 || k.rank != 3 || q.last() % heads.heads != 0 ||
      k.last() != q.last() / heads.heads * heads.kv_heads || q.dims[0] != k.dims[0] ||
      q.dims[1] != k.dims[1]) {
    return absl::InvalidArgumentError("q must be [B, T, heads * S], k and v [B, T, kv_heads * S]");
  }
  FT_RETURN_IF_ERROR(SetSize(q.last() / heads.heads, heads));
  heads.q = q;
  heads.k = k;
  heads.v = v;
  heads.batch = q.dims[0];
  heads.positions = q.dims[1];
  heads.q_stride = q.last();
  heads.kv_stride = k.last();
  return heads;
}

// Of one.
absl::StatusOr<AttentionHeads> CheckQkvAttention(const Tensor& qkv, const KernelAttributes& attributes) {
  FT_RETURN_IF_ERROR(CheckFloat(qkv, "qkv"));
  FT_ASSIGN_OR_RETURN(AttentionHeads heads, ReadAttributes(attributes));
  const int64_t parts = heads.heads + 2 * heads.kv_heads;
  if (qkv.rank != 3 || qkv.last() % parts != 0) {
    return absl::InvalidArgumentError("qkv must be [B, T, (heads + 2 kv_heads) * S]");
  }
  FT_RETURN_IF_ERROR(SetSize(qkv.last() / parts, heads));
  const int64_t q_width = heads.heads * heads.size, kv_width = heads.kv_heads * heads.size;
  heads.q = Columns(qkv, 0, q_width);
  heads.k = Columns(qkv, q_width, kv_width);
  heads.v = Columns(qkv, q_width + kv_width, kv_width);
  heads.batch = qkv.dims[0];
  heads.positions = qkv.dims[1];
  heads.q_stride = heads.kv_stride = qkv.last();
  return heads;
}

// From the first of `tensors` on.
absl::StatusOr<AttentionHeads> CheckInputs(const Tensor* tensors, const KernelAttributes& attributes,
                                           AttentionInputs inputs) {
  return inputs == AttentionInputs::kSeparate ? CheckAttention(tensors[0], tensors[1], tensors[2], attributes)
                                              : CheckQkvAttention(tensors[0], attributes);
}

size_t CountOf(AttentionInputs inputs) { return inputs == AttentionInputs::kSeparate ? 3 : 1; }

}  // namespace

absl::StatusOr<AttentionForward> ReadAttention(const KernelOperands& operands,
                                               const KernelAttributes& attributes, AttentionInputs inputs) {
  FT_RETURN_IF_ERROR(CheckCounts(operands, CountOf(inputs), 2));
  AttentionForward result = {.heads = {}, .out = operands.out[0], .lse = operands.out[1]};
  FT_ASSIGN_OR_RETURN(result.heads, CheckInputs(operands.in.data(), attributes, inputs));
  FT_RETURN_IF_ERROR(CheckSameShape(result.out, "out", result.heads.q));
  FT_RETURN_IF_ERROR(CheckSize(result.lse, "lse", result.heads.rows()));
  return result;
}

absl::StatusOr<AttentionBackward> ReadAttentionGrad(const KernelOperands& operands,
                                                    const KernelAttributes& attributes,
                                                    AttentionInputs inputs) {
  const size_t count = CountOf(inputs);
  FT_RETURN_IF_ERROR(CheckCounts(operands, 3 + count, count));
  AttentionBackward result = {.heads = {},
                              .dout = operands.in[0],
                              .out = operands.in[1 + count],
                              .lse = operands.in[2 + count],
                              .gradients = {}};
  FT_ASSIGN_OR_RETURN(result.heads, CheckInputs(&operands.in[1], attributes, inputs));
  constexpr const char* kGradients[] = {"dq", "dk", "dv"};
  for (size_t i = 0; i < count; ++i) {
    FT_RETURN_IF_ERROR(
        CheckSameShape(operands.out[i], count == 1 ? "dqkv" : kGradients[i], operands.in[1 + i]));
  }
  FT_ASSIGN_OR_RETURN(result.gradients, CheckInputs(operands.out.data(), attributes, inputs));
  FT_RETURN_IF_ERROR(CheckSameShape(result.dout, "dout", result.heads.q));
  FT_RETURN_IF_ERROR(CheckSameShape(result.out, "out", result.heads.q));
  FT_RETURN_IF_ERROR(CheckSize(result.lse, "lse", result.heads.rows()));
  return result;
}

}  // namespace ft
