// matmul of operands that are rounded to 8 bits: both go to the workspace as the library wants them, with
// what is summed over innermost, and it multiplies these.
#include "runtime/kernels/matmul/cuda_float8.h"

#include <utility>

#include "fmt/format.h"
#include "runtime/base/cuda_workspace.h"
#include "runtime/kernels/matmul/cuda.h"
#include "runtime/kernels/matmul/float8.h"
#include "runtime/kernels/matmul/operands.h"

namespace ft::cuda {
namespace {

constexpr uintptr_t kAligned = 16;        // of what is read in packs
constexpr int64_t kLibraryMultiple = 16;  // of rows and columns of a weight
constexpr int kFloat8Capability = 89;     // the first that multiplies floats of 8 bits
constexpr int kBlockwiseCapability = 90;  // the only one for which cuBLASLt has scales of 128 elements
// Of the workspace, which may have to be aligned.
constexpr int64_t kLibraryBytes = cuda_workspace::Matmul() - cuda_workspace::kAlignment;

// [m, k] times [n, k] of floats of 8 bits, from operands as they are stored.
struct Float8Matmul {
  Float8Rounding a, b;
  ProductSpec spec;
  ProductOperands operands;

  int Round(StreamHandle stream) const {
    if (const int error = RoundToFloat8(a, stream)) return error;
    return RoundToFloat8(b, stream);
  }
};

absl::Status CheckDevice(const DeviceProperties& device, bool blockwise) {
  const int capability = device.major * 10 + device.minor;
  if (blockwise ? capability == kBlockwiseCapability : capability >= kFloat8Capability)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("products in fp8 {} run on GPUs of compute capability {}, not {}.{}; compile with "
                  "--fp8-recipe={}",
                  blockwise ? "blockwise" : "tensorwise", blockwise ? "9.0" : "8.9 and newer", device.major,
                  device.minor, capability >= kFloat8Capability ? "tensorwise" : "none"));
}

absl::Status CheckStored(const Tensor& tensor, const char* name) {
  if (reinterpret_cast<uintptr_t>(tensor.data) % kAligned == 0 && tensor.last() % kLibraryMultiple == 0)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} has rows of {} elements and is rounded to 8 bits: expected multiples of {}, at a "
                  "multiple of {} bytes",
                  name, tensor.last(), kLibraryMultiple, kAligned));
}

Float8Rounding RoundingOf(const Tensor& stored, bool transpose, Float8 type, ScaleOf scale, char* place) {
  const int64_t outer = transpose ? stored.last() : stored.rows();
  const int64_t summed = transpose ? stored.rows() : stored.last();
  const int64_t padded = cuda_workspace::Float8Padded(summed);
  const cuda_workspace::Float8Parts parts = cuda_workspace::PartsOfFloat8(outer, summed);
  return {.x = stored.data,
          .rows = stored.rows(),
          .columns = stored.last(),
          .transpose = transpose,
          .type = type,
          .scale = scale,
          .padded = padded,
          .out = place,
          .greatest = reinterpret_cast<uint32_t*>(place + parts.greatest),
          .scales = reinterpret_cast<float*>(place + parts.scales),
          .strides = StridesOf(scale, outer, padded)};
}

absl::StatusOr<Float8Matmul> ReadMatmul(const KernelContext& context) {
  const Tensor &a = context.in(0), &b = context.in(1), &bias = context.in(2), &result = context.out(0);
  FT_ASSIGN_OR_RETURN(const Float8Operands rounded, ReadFloat8(context.attributes, a));
  FT_RETURN_IF_ERROR(CheckDevice(context.properties, rounded.blockwise));
  FT_ASSIGN_OR_RETURN(const ProductShape shape,
                      CheckProduct(context.attributes, a, b, bias, context.in(3), result));
  FT_RETURN_IF_ERROR(CheckStored(a, "a"));
  FT_RETURN_IF_ERROR(CheckStored(b, "b"));
  FT_RETURN_IF_ERROR(
      CheckWorkspace(context.operands, cuda_workspace::Float8Product(shape.m, shape.n, shape.k)));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(context.operands.workspace.data);
  char* const library =
      context.operands.workspace.as<char>() +
      (cuda_workspace::kAlignment - begin % cuda_workspace::kAlignment) % cuda_workspace::kAlignment;
  char* const place_a = library + kLibraryBytes;
  char* const place_b = place_a + cuda_workspace::PartsOfFloat8(shape.m, shape.k).bytes;
  const ScaleOf scale_a = rounded.blockwise ? ScaleOf::kVectors : ScaleOf::kTensor;
  const ScaleOf scale_b = !rounded.blockwise  ? ScaleOf::kTensor
                          : shape.transpose_a ? ScaleOf::kVectors
                                              : ScaleOf::kSquares;
  Float8Matmul matmul;
  matmul.a = RoundingOf(a, shape.transpose_a, rounded.a, scale_a, place_a);
  matmul.b = RoundingOf(b, !shape.transpose_b, rounded.b, scale_b, place_b);
  matmul.spec = {.m = shape.m,
                 .n = shape.n,
                 .k = matmul.a.padded,
                 .transpose_b = true,
                 .row_a = matmul.a.padded,
                 .row_b = matmul.b.padded,
                 .row_c = shape.n,
                 .input = a.dtype,
                 .output = result.dtype,
                 .accumulate = context.in(3).present(),
                 .bias = bias.present(),
                 .float8 = Float8Product{rounded.a, rounded.b, scale_a, scale_b}};
  matmul.operands = {.a = place_a,
                     .b = place_b,
                     .c = result.data,
                     .workspace = library,
                     .bias = bias.data,
                     .scale_a = matmul.a.scales,
                     .scale_b = matmul.b.scales};
  return matmul;
}

}  // namespace

KernelOr MakeFloat8Matmul(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const Float8Matmul matmul, ReadMatmul(context));
  if (matmul.spec.m == 0 || matmul.spec.n == 0) return MakeKernel([](StreamHandle) { return 0; });
  if (matmul.spec.k == 0) return absl::InvalidArgumentError("a product that sums over nothing");
  FT_ASSIGN_OR_RETURN(
      std::shared_ptr<Product> product,
      context.products.Create(matmul.spec, matmul.operands, static_cast<uint64_t>(kLibraryBytes)));
  return MakeKernel([matmul, product = std::move(product)](StreamHandle stream) {
    const int error = matmul.Round(stream);
    return error != 0 ? error : product->Launch(matmul.operands, stream);
  });
}

}  // namespace ft::cuda
