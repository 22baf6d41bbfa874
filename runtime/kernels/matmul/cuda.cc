// matmul. Products are the library's, which has results of the operands' type or f32, with a bias of the
// result's type. What else the op allows, and a bias that the library refuses, goes through f32 in the
// workspace: it is rounded once all the same.
#include "runtime/kernels/matmul/cuda.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/base/cuda_workspace.h"
#include "runtime/kernels/cast/cuda_device.h"
#include "runtime/kernels/matmul/float8.h"
#include "runtime/kernels/matmul/operands.h"

namespace ft::cuda {
namespace {

constexpr int64_t kLargestPeriod = int64_t{1} << 31;  // of cast/cuda_device.h

KernelOr MakeDirect(const KernelContext& context, const MatmulOperands& o) {
  FT_ASSIGN_OR_RETURN(
      std::shared_ptr<Product> product,
      context.products.Create(o.spec, o.addresses(), static_cast<uint64_t>(o.workspace_bytes)));
  return MakeKernel([addresses = o.addresses(), product = std::move(product)](StreamHandle stream) {
    return product->Launch(addresses, stream);
  });
}

// Rows [begin, begin + rows) of the result by way of f32.
struct Block {
  std::shared_ptr<Product> product;
  const void* a = nullptr;
  void* result = nullptr;
  int64_t rows = 0;
};

// Parts of the workspace: the library's, a bias of 16 bits as f32, a block of rows as f32 unless the result
// is f32.
struct Parts {
  static constexpr int64_t kLibraryBytes = int64_t{8} << 20;
  explicit Parts(const MatmulOperands& o)
      : converts_bias(o.spec.bias && o.spec.input != DType::kF32),
        bias(converts_bias ? o.workspace + kLibraryBytes : o.bias.data),
        rows(o.workspace + kLibraryBytes + (converts_bias ? cuda_workspace::Aligned(o.spec.n * 4) : 0)),
        rows_bytes(o.workspace + o.workspace_bytes - rows) {}
  bool converts_bias;
  void* bias;
  char* rows;
  int64_t rows_bytes;
};

absl::StatusOr<std::vector<Block>> MakeBlocks(const KernelContext& context, const MatmulOperands& o,
                                              const Parts& parts) {
  const bool in_place = o.spec.output == DType::kF32;
  const int64_t fitting = in_place ? o.spec.m : parts.rows_bytes / (o.spec.n * 4);
  if (parts.rows_bytes < 0 || fitting < 1 || o.spec.n >= kLargestPeriod) {
    return absl::InvalidArgumentError(fmt::format("a product of {} into {} with rows of {} is too wide",
                                                  Name(o.spec.input), Name(o.spec.output), o.spec.n));
  }
  // Whole tiles, so that blocks begin as well aligned as the tensors.
  constexpr int64_t kTile = 128;
  const int64_t step = fitting > kTile ? fitting / kTile * kTile : fitting;
  std::vector<Block> blocks;
  for (int64_t begin = 0; begin < o.spec.m; begin += step) {
    Block block;
    block.rows = std::min(step, o.spec.m - begin);
    const int64_t first = o.spec.transpose_a ? begin : begin * o.spec.row_a;
    block.a = o.a.as<char>() + first * static_cast<int64_t>(SizeOf(o.spec.input));
    block.result = o.result.as<char>() + begin * o.spec.n * static_cast<int64_t>(SizeOf(o.spec.output));
    ProductSpec spec = o.spec;
    spec.m = block.rows;
    spec.output = DType::kF32;
    spec.bias = false;
    const ProductOperands operands = {block.a, o.b.data, in_place ? block.result : parts.rows, o.workspace};
    FT_ASSIGN_OR_RETURN(block.product,
                        context.products.Create(spec, operands, static_cast<uint64_t>(Parts::kLibraryBytes)));
    blocks.push_back(std::move(block));
  }
  return blocks;
}

// result = round(acc + a b + bias), with acc, what is added to it and the bias in f32.
int LaunchBlock(const MatmulOperands& o, const Parts& parts, const Block& block, StreamHandle stream) {
  const bool in_place = o.spec.output == DType::kF32;
  void* const sums = in_place ? block.result : parts.rows;
  const int64_t elements = block.rows * o.spec.n;
  if (o.spec.accumulate && !in_place) {
    if (int error = Cast({block.result, sums, elements}, o.spec.output, DType::kF32, stream)) return error;
  }
  if (int error = block.product->Launch({block.a, o.b.data, sums, o.workspace}, stream)) return error;
  if (o.spec.bias) {
    if (int error = Add({sums, parts.bias, sums, elements, o.spec.n}, DType::kF32, stream)) return error;
  }
  return in_place ? 0 : Cast({sums, block.result, elements}, DType::kF32, o.spec.output, stream);
}

KernelOr MakeThroughF32(const KernelContext& context, const MatmulOperands& o) {
  const Parts parts(o);
  FT_ASSIGN_OR_RETURN(std::vector<Block> blocks, MakeBlocks(context, o, parts));
  return MakeKernel([o, parts, blocks = std::move(blocks)](StreamHandle stream) {
    if (parts.converts_bias) {
      if (int error = Cast({o.bias.data, parts.bias, o.spec.n}, o.spec.input, DType::kF32, stream))
        return error;
    }
    for (const Block& block : blocks) {
      if (int error = LaunchBlock(o, parts, block, stream)) return error;
    }
    return 0;
  });
}

KernelOr MakeMatmul(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 4, 1));
  if (RoundsToFloat8(context.attributes)) return MakeFloat8Matmul(context);
  FT_ASSIGN_OR_RETURN(
      const MatmulOperands operands,
      ReadProduct(context, context.in(0), context.in(1), context.in(2), context.in(3), context.out(0)));
  return MakeProduct(context, operands);
}

}  // namespace

absl::StatusOr<MatmulOperands> ReadProduct(const KernelContext& context, const Tensor& a, const Tensor& b,
                                           const Tensor& bias, const Tensor& acc, const Tensor& result) {
  FT_ASSIGN_OR_RETURN(const ProductShape shape, CheckProduct(context.attributes, a, b, bias, acc, result));
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, cuda_workspace::Matmul()));
  ProductSpec spec;
  spec.m = shape.m;
  spec.n = shape.n;
  spec.k = shape.k;
  spec.transpose_a = shape.transpose_a;
  spec.transpose_b = shape.transpose_b;
  spec.row_a = a.last();
  spec.row_b = b.last();
  spec.row_c = spec.n;
  spec.input = a.dtype;
  spec.output = result.dtype;
  spec.accumulate = acc.present();
  spec.bias = bias.present();
  char* const workspace = context.operands.workspace.as<char>();
  const int64_t past =
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(workspace)) % cuda_workspace::kAlignment;
  const int64_t skipped = past == 0 ? 0 : cuda_workspace::kAlignment - past;
  return MatmulOperands{spec, a, b, bias, result, workspace + skipped, cuda_workspace::Matmul() - skipped};
}

KernelOr MakeProduct(const KernelContext& context, const MatmulOperands& operands) {
  const ProductSpec& spec = operands.spec;
  if (spec.m == 0 || spec.n == 0) return MakeKernel([](StreamHandle) { return 0; });
  if (spec.k == 0) return absl::InvalidArgumentError("a product that sums over nothing");
  if (!spec.bias) {
    const bool direct = spec.output == spec.input || spec.output == DType::kF32;
    return direct ? MakeDirect(context, operands) : MakeThroughF32(context, operands);
  }
  if (spec.output == spec.input && reinterpret_cast<uintptr_t>(operands.bias.data) % 16 == 0) {
    KernelOr kernel = MakeDirect(context, operands);
    // The library's heuristics have no algorithm with a bias for some shapes, vectors among them.
    if (!absl::IsInvalidArgument(kernel.status())) return kernel;
  }
  return MakeThroughF32(context, operands);
}

void RegisterMatmul(KernelTable& table) { table.Add("matmul", MakeMatmul); }

}  // namespace ft::cuda
