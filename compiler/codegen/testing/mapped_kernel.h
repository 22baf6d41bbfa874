// Generated code, put into memory and called, as the executor will.
#pragma once

#include "compiler/codegen/kernel.h"
#include "compiler/codegen/testing/tensors.h"

namespace ft::compiler::testing {

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
