#include "runtime/kernels/attention/operands.h"

#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

// A factor of the scores: what f32 holds as a positive normal number.
absl::StatusOr<float> ReadFactor(const KernelAttributes& attributes, std::string_view name) {
  FT_ASSIGN_OR_RETURN(const double value,
                      FloatIn(attributes, name, std::numeric_limits<float>::min(), kMaxReal));
  return static_cast<float>(value);
}

// All but what shapes say; a scale that is absent is left for SetSizes.
absl::StatusOr<AttentionHeads> ReadAttributes(const KernelAttributes& attributes) {
  AttentionHeads result;
  FT_ASSIGN_OR_RETURN(result.heads, IntIn(attributes, "heads", 1, kMaxHeads));
  FT_ASSIGN_OR_RETURN(result.kv_heads, IntIn(attributes, "kv_heads", 1, kMaxHeads));
  FT_ASSIGN_OR_RETURN(result.causal, Flag(attributes, "causal"));
  FT_ASSIGN_OR_RETURN(result.alibi, Flag(attributes, "alibi"));
  if (attributes.Has("window")) {
    FT_ASSIGN_OR_RETURN(result.window, IntIn(attributes, "window", 1, std::numeric_limits<int64_t>::max()));
  }
  if (attributes.Has("scale")) {
    FT_ASSIGN_OR_RETURN(result.scale, ReadFactor(attributes, "scale"));
  }
  if (attributes.Has("softcap")) {
    FT_ASSIGN_OR_RETURN(result.softcap, ReadFactor(attributes, "softcap"));
  }
  if (result.heads % result.kv_heads != 0) {
    return absl::InvalidArgumentError(
        fmt::format("heads must be a multiple of kv_heads, got {} and {}", result.heads, result.kv_heads));
  }
  return result;
}

// The size of a head, and from `whole`, which is q or holds it, batch and positions.
absl::Status SetSizes(int64_t size, const Tensor& whole, AttentionHeads& heads) {
  if (size < 1 || size > kMaxHeadSize) {
    return absl::InvalidArgumentError(fmt::format("head size must be 1 to {}, got {}", kMaxHeadSize, size));
  }
  heads.size = size;
  if (heads.scale == 0.0f) heads.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(size)));
  heads.batch = whole.dims[0];
  heads.positions = whole.dims[1];
  heads.span = SpanOf(heads.positions, heads.causal, heads.window);
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
  FT_RETURN_IF_ERROR(SetSizes(q.last() / heads.heads, q, heads));
  heads.q = q;
  heads.k = k;
  heads.v = v;
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
  FT_RETURN_IF_ERROR(SetSizes(qkv.last() / parts, qkv, heads));
  const int64_t q_width = heads.heads * heads.size, kv_width = heads.kv_heads * heads.size;
  heads.q = Columns(qkv, 0, q_width);
  heads.k = Columns(qkv, q_width, kv_width);
  heads.v = Columns(qkv, q_width + kv_width, kv_width);
  heads.q_stride = heads.kv_stride = qkv.last();
  return heads;
}

// From the first of `tensors` on.
absl::StatusOr<AttentionHeads> CheckInputs(const Tensor* tensors, const KernelAttributes& attributes,
                                           AttentionInputs inputs) {
  return inputs == AttentionInputs::kSeparate ? CheckAttention(tensors[0], tensors[1], tensors[2], attributes)
                                              : CheckQkvAttention(tensors[0], attributes);
}

// lengths, segments and rng, each of which may be absent, from the first of `tensors` on.
constexpr size_t kOptionalOperands = 3;
absl::Status ReadOptional(const Tensor* tensors, const KernelAttributes& attributes, AttentionHeads& heads) {
  const Tensor &lengths = tensors[0], &segments = tensors[1], &rng = tensors[2];
  if (lengths.present()) {
    FT_RETURN_IF_ERROR(CheckSize(lengths, "lengths", heads.batch, DType::kI32));
    heads.lengths = lengths.as<int32_t>();
  }
  if (segments.present()) {
    FT_RETURN_IF_ERROR(CheckSize(segments, "segments", heads.batch * heads.positions, DType::kI32));
    if (heads.positions > std::numeric_limits<int32_t>::max())
      return absl::InvalidArgumentError("segments want fewer than 2^31 positions");
    heads.segments = segments.as<int32_t>();
  }
  if (!rng.present()) return absl::OkStatus();
  FT_ASSIGN_OR_RETURN(heads.dropout, ReadDropout(attributes, rng));
  return absl::OkStatus();
}

size_t CountOf(AttentionInputs inputs) { return inputs == AttentionInputs::kSeparate ? 3 : 1; }

}  // namespace

double AlibiSlope(int64_t head, int64_t heads) {
  const int64_t sequence = AlibiHeads(heads);
  const double exponent = head < sequence ? -8.0 * static_cast<double>(head + 1)
                                          : -4.0 * static_cast<double>(2 * (head - sequence) + 1);
  return std::exp2(exponent / static_cast<double>(sequence));
}

absl::StatusOr<AttentionForward> ReadAttention(const KernelOperands& operands,
                                               const KernelAttributes& attributes, AttentionInputs inputs) {
  const size_t count = CountOf(inputs);
  FT_RETURN_IF_ERROR(CheckCounts(operands, count + kOptionalOperands, 2));
  AttentionForward result = {.heads = {}, .out = operands.out[0], .lse = operands.out[1]};
  FT_ASSIGN_OR_RETURN(result.heads, CheckInputs(operands.in.data(), attributes, inputs));
  FT_RETURN_IF_ERROR(ReadOptional(&operands.in[count], attributes, result.heads));
  FT_RETURN_IF_ERROR(CheckSameShape(result.out, "out", result.heads.q));
  FT_RETURN_IF_ERROR(CheckSize(result.lse, "lse", result.heads.rows()));
  return result;
}

absl::StatusOr<AttentionBackward> ReadAttentionGrad(const KernelOperands& operands,
                                                    const KernelAttributes& attributes,
                                                    AttentionInputs inputs) {
  const size_t count = CountOf(inputs);
  FT_RETURN_IF_ERROR(CheckCounts(operands, 3 + count + kOptionalOperands, count));
  AttentionBackward result = {.heads = {},
                              .dout = operands.in[0],
                              .out = operands.in[1 + count],
                              .lse = operands.in[2 + count],
                              .gradients = {}};
  FT_ASSIGN_OR_RETURN(result.heads, CheckInputs(&operands.in[1], attributes, inputs));
  FT_RETURN_IF_ERROR(ReadOptional(&operands.in[3 + count], attributes, result.heads));
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
