#include "compiler/codegen/testing/guarded_run.h"

#include <cmath>
#include <list>

#include "runtime/base/philox.h"
#include "llvm/ADT/STLExtras.h"

namespace ft::compiler::testing {
namespace {

constexpr size_t kGuard = 64, kAlignment = 16;
constexpr char kPattern = '\x7b'; // of floats a large number, of truth values none

// Bytes between guards, not aligned to more than they have to be.
class GuardedBuffer {
public:
  explicit GuardedBuffer(std::string bytes)
      : bytes(std::move(bytes)), memory(2 * kAlignment + 2 * kGuard + this->bytes.size(), kPattern) {
    auto address = reinterpret_cast<uintptr_t>(memory.data());
    begin = (address + 2 * kAlignment - 1) / (2 * kAlignment) * 2 * kAlignment - address + kGuard;
    if ((address + begin) % (2 * kAlignment) == 0)
      begin += kAlignment;
    memory.replace(begin, this->bytes.size(), this->bytes);
  }
  GuardedBuffer(const GuardedBuffer &) = delete;
  void *data() { return memory.data() + begin; }
  std::string contents() const { return memory.substr(begin, bytes.size()); }
  bool isUnchanged() const { return contents() == bytes; }
  bool isIntact() const {
    std::string all(memory.size(), kPattern);
    return all.replace(begin, bytes.size(), contents()) == memory;
  }

private:
  std::string bytes, memory;
  size_t begin;
};

} // namespace

std::vector<std::string> runGuarded(const std::vector<HostTensor> &inputs,
                                    llvm::ArrayRef<mlir::RankedTensorType> results,
                                    llvm::ArrayRef<int64_t> partialBytes, unsigned draws,
                                    llvm::function_ref<void(void *const *operands)> call) {
  std::list<GuardedBuffer> buffers;
  for (const HostTensor &input : inputs)
    buffers.emplace_back(input.toMemory());
  for (mlir::RankedTensorType type : results)
    buffers.emplace_back(std::string(bytesOf(type), kPattern));
  for (int64_t bytes : partialBytes)
    buffers.emplace_back(std::string(bytes, kPattern));
  std::vector<void *> operands;
  for (GuardedBuffer &buffer : buffers)
    operands.push_back(buffer.data());
  for (unsigned draw = 0; draw < draws; ++draw)
    operands.push_back(reinterpret_cast<void *>(uintptr_t{streamOf(draw)}));
  call(operands.data());
  std::vector<std::string> out;
  for (auto [i, buffer] : llvm::enumerate(buffers)) {
    if (!buffer.isIntact() || (i < inputs.size() && !buffer.isUnchanged()))
      return {};
    if (i >= inputs.size() && i < inputs.size() + results.size())
      out.push_back(buffer.contents());
  }
  return out;
}

uint32_t streamOf(unsigned draw) { return kFirstOpStream + 3 * draw + 1; }

bool sameBits(const HostTensor &a, const HostTensor &b) {
  for (size_t i = 0; i < a.values.size(); ++i)
    if (!(std::isnan(a.values[i]) && std::isnan(b.values[i])) &&
        (a.values[i] != b.values[i] || std::signbit(a.values[i]) != std::signbit(b.values[i])))
      return false;
  return true;
}

} // namespace ft::compiler::testing
