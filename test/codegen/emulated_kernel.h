// Kernels for GPUs on the host: the LLVM IR that PTX is written from, compiled for this machine, with
// emulated threads (test/doubles/cuda) in place of the hardware's.
#pragma once

#include "compiler/codegen/ptx_kernel.h"
#include "compiler/codegen/testing/tensors.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace llvm::orc {
class LLJIT;
}  // namespace llvm::orc

namespace ft::compiler::testing {

class EmulatedKernel {
 public:
  // With `watched`, a race of threads is an error of the launch. An error where the IR has what the emulation
  // does not know.
  static llvm::Expected<EmulatedKernel> of(mlir::func::FuncOp body, bool watched = false);
  EmulatedKernel(EmulatedKernel&&);
  ~EmulatedKernel();

  const PtxInterface& interface() const { return interface_; }
  // Bytes of each buffer of partial results, and streams.
  llvm::ArrayRef<int64_t> partials() const { return partials_; }
  unsigned draws() const { return draws_; }
  // `kernel`, and `combine` if there is one. An empty text, or what went wrong. `descending`: blocks, and
  // threads of a block, the other way round. `spaces`: an elementwise body over so many whole values.
  std::string call(void* const* operands, bool descending, int64_t spaces = 1) const;

 private:
  EmulatedKernel();

  std::string launch(const char* name, const GpuLaunch& launch, void* const* operands) const;

  PtxInterface interface_;
  llvm::SmallVector<int64_t> partials_;
  unsigned draws_ = 0;
  std::unique_ptr<llvm::orc::LLJIT> code_;
};

// The results, which are the same whichever way round threads run. The test fails where they are not, where
// threads wait in vain, and where anything but results is written.
std::vector<HostTensor> runEmulated(mlir::func::FuncOp body, const std::vector<HostTensor>& inputs,
                                    bool watched = false);

}  // namespace ft::compiler::testing
