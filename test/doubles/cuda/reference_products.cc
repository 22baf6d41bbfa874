#include "test/doubles/cuda/reference_products.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "fmt/format.h"
#include "runtime/backends/cuda/device_code/element.h"

namespace ft::cuda::emulation {
namespace {

float Load(const void* data, DType dtype, int64_t i) {
  if (dtype == DType::kBF16) return ToFloat(static_cast<const BF16*>(data)[i]);
  if (dtype == DType::kF16) return ToFloat(static_cast<const F16*>(data)[i]);
  return static_cast<const float*>(data)[i];
}

void Store(void* data, DType dtype, int64_t i, float value) {
  if (dtype == DType::kBF16) {
    static_cast<BF16*>(data)[i] = FromFloat<BF16>(value);
  } else if (dtype == DType::kF16) {
    static_cast<F16*>(data)[i] = FromFloat<F16>(value);
  } else {
    static_cast<float*>(data)[i] = value;
  }
}

// The value of a float of 8 bits, by its definition, times its scale.
struct Scaled {
  const void* data;
  int64_t rows, depth, stride;
  Float8 type;
  ScaleOf scale;
  const float* scales;

  float At(int64_t row, int64_t k) const {
    const int bits = static_cast<const uint8_t*>(data)[row * stride + k];
    const int mantissa = type == Float8::kE4M3 ? 3 : 2, bias = type == Float8::kE4M3 ? 7 : 15;
    const int exponent = (bits & 0x7F) >> mantissa, fraction = bits & ((1 << mantissa) - 1);
    const bool is_nan = type == Float8::kE4M3 ? (bits & 0x7F) == 0x7F : exponent == 31;
    if (is_nan) return NAN;
    const double value = exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa)
                                       : std::ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
    int64_t at = 0;
    if (scale == ScaleOf::kVectors) at = k / 128 * rows + row;  // all rows of a block of k, then the next
    if (scale == ScaleOf::kSquares)
      at = row / 128 * (((depth + 127) / 128 + 3) / 4 * 4) + k / 128;  // in fours
    return static_cast<float>((bits & 0x80 ? -value : value) * scales[at]);
  }

  std::vector<float> All() const {
    std::vector<float> values(static_cast<size_t>(rows * depth));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t k = 0; k < depth; ++k) values[i * depth + k] = At(i, k);
    return values;
  }
};

// Rows of what is stored as [rows, columns], as f32 [rows][columns], or its transpose.
std::vector<float> Gather(const void* data, DType dtype, int64_t rows, int64_t columns, int64_t stride,
                          bool transpose) {
  std::vector<float> values(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j)
      values[transpose ? j * rows + i : i * columns + j] = Load(data, dtype, i * stride + j);
  }
  return values;
}

absl::Status CheckSpec(const ProductSpec& s) {
  if (s.m <= 0 || s.n <= 0 || s.k <= 0)
    return absl::InvalidArgumentError(fmt::format("a product of m {}, n {}, k {}", s.m, s.n, s.k));
  if (s.row_a < (s.transpose_a ? s.m : s.k) || s.row_b < (s.transpose_b ? s.k : s.n) || s.row_c < s.n)
    return absl::InvalidArgumentError(
        fmt::format("a product of m {}, n {}, k {} with rows {}, {}, {} apart: too close", s.m, s.n, s.k,
                    s.row_a, s.row_b, s.row_c));
  // What epilogues cuBLASLt has, or is asked for (libraries/cublaslt_products_call.cc).
  const bool gelu = s.epilogue == Epilogue::kGelu, reads = s.epilogue == Epilogue::kGeluGrad;
  const bool refused =
      gelu || reads ? s.input == DType::kF32 || s.output != s.input || s.accumulate || (reads && s.bias) ||
                          (reads && !s.auxiliary) || (s.auxiliary && s.row_c % 8 != 0)
      : MakesSums(s.epilogue) ? s.input == DType::kF32 || s.bias || s.auxiliary || s.accumulate
                              : s.auxiliary;
  if (refused) return absl::InvalidArgumentError("a product with an epilogue that there is not");
  if (s.float8) {
    // As the library has them: what is summed over is innermost.
    const Float8Product& f = *s.float8;
    const bool in_blocks = f.scale_a != ScaleOf::kTensor;
    if (s.transpose_a || !s.transpose_b || s.input != DType::kBF16 || s.n % 16 != 0 ||
        s.k % (in_blocks ? 128 : 16) != 0 || s.row_a % 16 != 0 || s.row_b % 16 != 0 ||
        s.epilogue != Epilogue::kNone || (f.a == Float8::kE5M2 && f.b == Float8::kE5M2) ||
        f.scale_a == ScaleOf::kSquares || in_blocks != (f.scale_b != ScaleOf::kTensor))
      return absl::InvalidArgumentError("a product of floats of 8 bits that there is not");
  }
  // cuBLASLt has results of the inputs' type or f32.
  if (!IsFloat(s.input) || (s.output != s.input && s.output != DType::kF32))
    return absl::InvalidArgumentError(fmt::format("a product of {} into {}", Name(s.input), Name(s.output)));
  return absl::OkStatus();
}

class ReferenceProduct final : public Product {
 public:
  ReferenceProduct(const ProductSpec& spec, size_t alignment, uint64_t workspace_bytes)
      : spec_(spec), alignment_(alignment), workspace_bytes_(workspace_bytes) {}

  int Launch(const ProductOperands& o, StreamHandle stream) override {
    const auto aligned = [&](const void* data) {
      return data != nullptr && reinterpret_cast<uintptr_t>(data) % alignment_ == 0;
    };
    if (!aligned(o.a) || !aligned(o.b) || !aligned(o.c))
      return Fail(
          kInvalidValue,
          fmt::format("a product's operand is not aligned to {} bytes as at its creation", alignment_));
    if (spec_.bias != (o.bias != nullptr))
      return Fail(kInvalidValue, "a product's bias is not as in its spec");
    if (spec_.auxiliary != (o.auxiliary != nullptr) || reinterpret_cast<uintptr_t>(o.auxiliary) % 16 != 0)
      return Fail(kInvalidValue, "a product's auxiliary operand is not as in its spec");
    if (MakesSums(spec_.epilogue) != (o.sums != nullptr) || reinterpret_cast<uintptr_t>(o.sums) % 16 != 0)
      return Fail(kInvalidValue, "a product's sums are not as in its spec");
    if (spec_.float8.has_value() != (o.scale_a != nullptr) ||
        spec_.float8.has_value() != (o.scale_b != nullptr))
      return Fail(kInvalidValue, "a product's scales are not as in its spec");
    if (workspace_bytes_ > 0 && o.workspace == nullptr)
      return Fail(kInvalidValue, "a product's workspace is null");
    return EnqueueHost(stream, "product", [o, spec = spec_, bytes = workspace_bytes_] {
      Spoil(static_cast<std::byte*>(o.workspace), bytes);
      Compute(spec, o);
      return kSuccess;
    });
  }

 private:
  // A library may leave anything in its workspace. Its ends are where others' data would be.
  static void Spoil(std::byte* workspace, uint64_t bytes) {
    const uint64_t end = std::min(bytes, uint64_t{1} << 18);
    if (bytes == 0) return;
    std::memset(workspace, 0xCD, end);
    std::memset(workspace + bytes - end, 0xCD, end);
  }

  static void Compute(const ProductSpec& s, const ProductOperands& o) {
    // Both with k innermost.
    const std::vector<float> rows =
        s.float8 ? Scaled{o.a, s.m, s.k, s.row_a, s.float8->a, s.float8->scale_a, o.scale_a}.All()
                 : Gather(o.a, s.input, s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k, s.row_a,
                          s.transpose_a);
    const std::vector<float> columns =
        s.float8 ? Scaled{o.b, s.n, s.k, s.row_b, s.float8->b, s.float8->scale_b, o.scale_b}.All()
                 : Gather(o.b, s.input, s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n, s.row_b,
                          !s.transpose_b);
    if (MakesSums(s.epilogue)) {
      const std::vector<float>& summed = s.epilogue == Epilogue::kSumsOfA ? rows : columns;
      for (int64_t i = 0; i < static_cast<int64_t>(summed.size()) / s.k; ++i) {
        double sum = 0;
        for (int64_t l = 0; l < s.k; ++l) sum += summed[i * s.k + l];
        Store(o.sums, s.output, i, static_cast<float>(sum));
      }
    }
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < s.k; ++l) sum += double{rows[i * s.k + l]} * columns[j * s.k + l];
        const int64_t at = i * s.row_c + j;
        if (s.accumulate) sum += Load(o.c, s.output, at);
        if (s.bias) sum += Load(o.bias, s.input, j);
        Store(o.c, s.output, at, static_cast<float>(Finish(s, o.auxiliary, at, sum)));
      }
    }
  }

  // The epilogue: of the sum as it is, before any rounding.
  static double Finish(const ProductSpec& s, void* auxiliary, int64_t at, double sum) {
    constexpr double kScale = 0.7978845608028654, kCubic = 0.044715;  // sqrt(2 / pi)
    if (s.epilogue == Epilogue::kNone || MakesSums(s.epilogue)) return sum;
    if (s.epilogue == Epilogue::kGelu && s.auxiliary) Store(auxiliary, s.output, at, static_cast<float>(sum));
    const double x = s.epilogue == Epilogue::kGelu ? sum : double{Load(auxiliary, s.output, at)};
    const double t = std::tanh(kScale * (x + kCubic * x * x * x));
    if (s.epilogue == Epilogue::kGelu) return 0.5 * x * (1 + t);
    return sum * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kScale * (1 + 3 * kCubic * x * x));
  }

  ProductSpec spec_;
  size_t alignment_;
  uint64_t workspace_bytes_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<Product>> ReferenceProducts::Create(const ProductSpec& spec,
                                                                   const ProductOperands& o,
                                                                   uint64_t workspace_bytes) {
  if (absl::Status status = CheckSpec(spec); !status.ok()) return status;
  if (o.a == nullptr || o.b == nullptr || o.c == nullptr || (workspace_bytes > 0 && o.workspace == nullptr))
    return absl::InvalidArgumentError("a product without an operand");
  // The largest power of two up to 256 that divides all three addresses.
  size_t alignment = 256;
  for (const void* data : {o.a, o.b, static_cast<const void*>(o.c)}) {
    while (reinterpret_cast<uintptr_t>(data) % alignment != 0) alignment /= 2;
  }
  if (alignment < SizeOf(spec.input) || alignment < SizeOf(spec.output))
    return absl::InvalidArgumentError("a product's operand is not aligned to its elements");
  if (reinterpret_cast<uintptr_t>(o.workspace) % 256 != 0)
    return absl::InvalidArgumentError("a product's workspace is not aligned to 256 bytes");
  return std::make_shared<ReferenceProduct>(spec, alignment, workspace_bytes);
}

absl::StatusOr<std::shared_ptr<Product>> ReferenceProducts::Fuse(const ProductSpec& spec,
                                                                 const ProductOperands& operands,
                                                                 uint64_t workspace_bytes,
                                                                 absl::FunctionRef<int(StreamHandle)> apart) {
  if (!fuses_) return nullptr;
  absl::StatusOr<std::shared_ptr<Product>> product = Create(spec, operands, workspace_bytes);
  if (absl::IsInvalidArgument(product.status())) return nullptr;
  return product;
}

}  // namespace ft::cuda::emulation
