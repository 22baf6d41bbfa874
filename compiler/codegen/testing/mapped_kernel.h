// Generated code, put into memory and called, as the executor will.
#pragma once

#include "compiler/codegen/kernel.h"
#include "compiler/codegen/ptx_kernel.h"
#include "compiler/codegen/testing/tensors.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler::testing {

/// What a caller has to know.
struct KernelInterface {
  int64_t rows = 0;
  int64_t blockRows = 1; // cuts of the rows are multiples of this
  int64_t chunks = 0;    // of combine; 0 where there is none
  llvm::SmallVector<int64_t> partialBytes;
  unsigned draws = 0;
};
struct GeneratedKernel {
  KernelInterface interface;
  std::string code;
  uint64_t kernelOffset = 0, combineOffset = 0;
};

/// Of functions; they fail with one error where that is no body of a cluster.
mlir::FailureOr<KernelInterface> interfaceOf(mlir::func::FuncOp body);
mlir::FailureOr<GeneratedKernel> generateKernel(mlir::func::FuncOp body, X86Level level);
mlir::FailureOr<PtxInterface> ptxInterfaceOf(mlir::func::FuncOp body);
mlir::FailureOr<PtxKernel> generatePtx(mlir::func::FuncOp body);

/// Of this machine.
bool canRun(X86Level level);

class MappedKernel {
public:
  explicit MappedKernel(GeneratedKernel kernel);
  ~MappedKernel();
  MappedKernel(const MappedKernel &) = delete;
  MappedKernel &operator=(const MappedKernel &) = delete;

  const KernelInterface &interface() const { return kernel.interface; }
  /// One call of `kernel` for `rows` rows at a time, rounded up to whole blocks, then one of `combine`.
  void call(void *const *operands, int64_t rows) const;

private:
  using Entry = void (*)(void *const *, int64_t, int64_t);
  Entry at(uint64_t offset) const { return reinterpret_cast<Entry>(static_cast<char *>(memory) + offset); }

  GeneratedKernel kernel;
  void *memory = nullptr;
  size_t size = 0;
};

/// Results as the kernel wrote them, filled with a pattern before. Empty where a byte beside a buffer changed
/// or an input did. `rows` as above.
std::vector<std::string> runOn(const MappedKernel &kernel, const std::vector<HostTensor> &inputs,
                               llvm::ArrayRef<mlir::RankedTensorType> results, int64_t rows);

} // namespace ft::compiler::testing
