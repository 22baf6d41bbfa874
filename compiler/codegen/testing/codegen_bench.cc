// How fast generated kernels are: GB/s of arguments and results, one thread, 4096 x 768, best of several.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>

#include "compiler/codegen/testing/bodies.h"
#include "compiler/codegen/testing/code_test.h"

namespace ft::compiler::testing {
namespace {

using namespace mlir;

constexpr size_t kAlignment = 64;

double secondsOf(const MappedKernel &kernel, void *const *operands) {
  double best = 1e30;
  for (int i = 0; i < 30; ++i) {
    auto begin = std::chrono::steady_clock::now();
    kernel.call(operands, kernel.interface().rows);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

void measure(const char *name, func::FuncOp body, X86Level level) {
  FailureOr<GeneratedKernel> generated = generateKernel(body, level);
  if (failed(generated))
    return;
  size_t size = generated->code.size();
  MappedKernel kernel(std::move(*generated));
  std::vector<std::string> buffers;
  double bytes = 0;
  for (auto [i, type] : llvm::enumerate(body.getArgumentTypes())) {
    HostTensor tensor(cast<RankedTensorType>(type));
    tensor.values = numbers(tensor.values.size(), i + 1, true);
    buffers.push_back(tensor.toMemory());
  }
  for (Type type : body.getResultTypes())
    buffers.emplace_back(bytesOf(cast<RankedTensorType>(type)), 1);
  for (const std::string &buffer : buffers)
    bytes += static_cast<double>(buffer.size());
  for (int64_t partial : kernel.interface().partialBytes)
    buffers.emplace_back(partial, 1);
  std::vector<void *> operands;
  for (std::string &buffer : buffers) { // aligned as those of plans
    size_t size = buffer.size(), space = size + kAlignment;
    buffer.resize(space);
    void *aligned = buffer.data();
    operands.push_back(std::align(kAlignment, size, aligned, space));
    std::memmove(operands.back(), buffer.data(), size);
  }
  std::printf("%-14s %s %6zu bytes of code %7.1f GB/s\n", name, nameOf(level).str().c_str(), size,
              bytes / secondsOf(kernel, operands.data()) * 1e-9);
}

void measureAll() {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::ft::FtDialect, func::FuncDialect>();
  const std::pair<const char *, const char *> bodies[] = {
      {"rms_norm", kRmsNorm}, {"layer_norm", kLayerNorm}, {"rms_norm_grad", kRmsNormGrad},
      {"gelu", kGelu},        {"softmax", kSoftmax},      {"swiglu", kSwiglu},
      {"adamw", kAdamW}};
  for (const char *element : {"f32", "bf16"})
    for (auto [name, text] : bodies)
      for (X86Level level : kX86Levels) {
        auto module = parseBody(context, text, {4096, 768}, element);
        std::printf("%-4s ", element);
        if (canRun(level))
          measure(name, *module->getOps<func::FuncOp>().begin(), level);
      }
}

} // namespace
} // namespace ft::compiler::testing

int main() { ft::compiler::testing::measureAll(); }
