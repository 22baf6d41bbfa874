#include "compiler/codegen/testing/mapped_kernel.h"

#include <sys/mman.h>

#include <cstring>

namespace ft::compiler::testing {
namespace {

constexpr size_t kGuard = 64;
constexpr char kPattern = '\x7b'; // of floats a large number, of truth values none

} // namespace

bool canRun(X86Level level) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  switch (level) {
  case X86Level::V2:
    return __builtin_cpu_supports("x86-64-v2");
  case X86Level::V3:
    return __builtin_cpu_supports("x86-64-v3");
  case X86Level::V4:
    return __builtin_cpu_supports("x86-64-v4");
  }
#endif
  return false;
}

MappedKernel::MappedKernel(GeneratedKernel code) : kernel(std::move(code)), size(kernel.code.size()) {
  memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(memory, kernel.code.data(), size);
  mprotect(memory, size, PROT_READ | PROT_EXEC);
}

MappedKernel::~MappedKernel() { munmap(memory, size); }

void MappedKernel::call(void *const *operands, int64_t rows) const {
  const KernelInterface &interface = kernel.interface;
  int64_t step = (rows + interface.blockRows - 1) / interface.blockRows * interface.blockRows;
  for (int64_t begin = 0; begin < interface.rows; begin += step)
    at(kernel.kernelOffset)(operands, begin, std::min(begin + step, interface.rows));
  for (int64_t chunk = 0; chunk < interface.chunks; ++chunk)
    at(kernel.combineOffset)(operands, chunk, chunk + 1);
}

std::vector<std::string> runOn(const MappedKernel &kernel, const std::vector<HostTensor> &inputs,
                               llvm::ArrayRef<mlir::RankedTensorType> results, int64_t rows) {
  std::vector<std::string> buffers;
  auto add = [&](const std::string &bytes) {
    buffers.push_back(std::string(kGuard, kPattern) + bytes + std::string(kGuard, kPattern));
  };
  for (const HostTensor &input : inputs)
    add(input.toMemory());
  for (mlir::RankedTensorType type : results)
    add(std::string(bytesOf(type), kPattern));
  for (int64_t bytes : kernel.interface().partialBytes)
    add(std::string(bytes, kPattern));
  std::vector<void *> operands;
  for (std::string &buffer : buffers)
    operands.push_back(buffer.data() + kGuard);
  std::vector<std::string> before(buffers.begin(), buffers.begin() + inputs.size());
  kernel.call(operands.data(), rows);
  std::vector<std::string> out;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const std::string &buffer = buffers[i], guard(kGuard, kPattern);
    if (i < inputs.size()
            ? buffer != before[i]
            : buffer.substr(0, kGuard) != guard || buffer.substr(buffer.size() - kGuard) != guard)
      return {};
    if (i >= inputs.size() && i < inputs.size() + results.size())
      out.push_back(buffer.substr(kGuard, buffer.size() - 2 * kGuard));
  }
  return out;
}

} // namespace ft::compiler::testing
