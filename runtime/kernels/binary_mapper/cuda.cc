// binary_mapper, binary_mapper_grad.
#include <algorithm>

#include "runtime/backends/cuda/register.h"
#include "runtime/base/cuda_workspace.h"
#include "runtime/kernels/binary_mapper/cuda_device.h"
#include "runtime/kernels/binary_mapper/operands.h"
#include "runtime/kernels/embedding/cuda_device.h"

namespace ft::cuda {
namespace {

static_assert(cuda_workspace::BinaryMapperCodes(kMaxCodeBits) == 1 << kCodeBlockBits);

KernelOr MakeBinaryMapper(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const BinaryMapperOperands read, ReadBinaryMapper(context.operands));
  const Tensor &index = read.index, &table = read.table;
  const EmbeddingArgs args = {index.as<int32_t>(), table.data,   read.result.data, table.dtype,
                              index.elements(),    table.rows(), table.last()};
  return MakeKernel([args](StreamHandle stream) { return Embedding(args, stream); });
}

// The gradient of the logits: products of dy with a block of the table, then what they add, block by block.
class MapperGrad {
 public:
  static absl::StatusOr<MapperGrad> Create(const KernelContext& context) {
    MapperGrad kernel(context);
    FT_ASSIGN_OR_RETURN(kernel.product_, kernel.MakeProduct(context, kernel.block_rows_));
    kernel.last_product_ = kernel.product_;
    const int64_t rest = kernel.rows_ % kernel.block_rows_;
    if (rest != 0) {
      FT_ASSIGN_OR_RETURN(kernel.last_product_, kernel.MakeProduct(context, rest));
    }
    return kernel;
  }

  int operator()(StreamHandle stream) const {
    for (int64_t begin = 0; begin < rows_; begin += block_rows_) {
      const int64_t rows = std::min(block_rows_, rows_ - begin);
      for (int64_t block = 0; block < code_blocks_; ++block) {
        if (const int error = Step(begin, rows, block, stream); error != 0) return error;
      }
    }
    return 0;
  }

 private:
  explicit MapperGrad(const KernelContext& context)
      : dtype_(context.in(1).dtype),
        dy_(context.in(0).as<char>()),
        logits_(context.in(1).as<char>()),
        table_(context.in(2).as<char>()),
        dlogits_(context.out(0).as<char>()),
        rows_(context.in(1).rows()),
        bits_(context.in(1).last()),
        width_(context.in(2).last()),
        block_rows_(cuda_workspace::BinaryMapperRows(rows_)),
        codes_(cuda_workspace::BinaryMapperCodes(bits_)),
        code_blocks_((int64_t{1} << bits_) / codes_),
        products_(context.operands.workspace.as<char>()),
        sums_(products_ + cuda_workspace::BinaryMapperProducts(rows_, bits_)),
        scratch_(sums_ + cuda_workspace::BinaryMapperSums(rows_, bits_)) {}

  absl::StatusOr<std::shared_ptr<Product>> MakeProduct(const KernelContext& context, int64_t rows) const {
    const ProductSpec spec = {.m = rows,
                              .n = codes_,
                              .k = width_,
                              .transpose_b = true,
                              .row_a = width_,
                              .row_b = width_,
                              .row_c = codes_,
                              .input = dtype_,
                              .output = DType::kF32};
    return context.products.Create(spec, {dy_, table_, products_, scratch_}, cuda_workspace::Matmul());
  }

  int Step(int64_t begin, int64_t rows, int64_t block, StreamHandle stream) const {
    const int64_t size = static_cast<int64_t>(SizeOf(dtype_));
    Product& product = rows == block_rows_ ? *product_ : *last_product_;
    const int error = product.Launch(
        {dy_ + begin * width_ * size, table_ + block * codes_ * width_ * size, products_, scratch_}, stream);
    if (error != 0) return error;
    const CodeBlockArgs args = {reinterpret_cast<const float*>(products_),
                                logits_ + begin * bits_ * size,
                                reinterpret_cast<float*>(sums_),
                                dlogits_ + begin * bits_ * size,
                                rows,
                                static_cast<int>(bits_),
                                block};
    return AddCodeBlock(args, dtype_, stream);
  }

  DType dtype_;
  const char* dy_;
  const char* logits_;
  const char* table_;
  char* dlogits_;
  int64_t rows_, bits_, width_;
  int64_t block_rows_, codes_, code_blocks_;
  char* products_;  // [block rows, codes] of f32
  char* sums_;      // [block rows, bits] of f32
  char* scratch_;
  std::shared_ptr<Product> product_, last_product_;  // of a whole block of rows, and of the last one
};

KernelOr MakeBinaryMapperGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const BinaryMapperOperands read, ReadBinaryMapperGrad(context.operands));
  const Tensor& logits = read.logits;
  FT_RETURN_IF_ERROR(CheckWorkspace(
      context.operands,
      cuda_workspace::BinaryMapperGrad(logits.rows(), logits.last(), read.table.last(), logits.dtype)));
  if (logits.rows() == 0) return MakeKernel([](StreamHandle) { return 0; });
  FT_ASSIGN_OR_RETURN(MapperGrad kernel, MapperGrad::Create(context));
  return MakeKernel(std::move(kernel));
}

}  // namespace

void RegisterBinaryMapper(KernelTable& table) {
  table.Add("binary_mapper", &MakeBinaryMapper);
  table.Add("binary_mapper_grad", &MakeBinaryMapperGrad);
}

}  // namespace ft::cuda
