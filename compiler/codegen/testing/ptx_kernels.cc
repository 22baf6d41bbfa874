// Writes the PTX of kernels of tests into a folder, for tools/gpu/spill_report: NAME.ptx each.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "compiler/codegen/ptx_kernel.h"
#include "compiler/codegen/testing/bodies.h"
#include "compiler/codegen/testing/code_test.h"

namespace ft::compiler::testing {
namespace {

using namespace mlir;

constexpr std::pair<const char *, const char *> kBodies[] = {
    {"rms_norm", kRmsNorm}, {"layer_norm", kLayerNorm}, {"rms_norm_grad", kRmsNormGrad},
    {"gelu", kGelu},        {"softmax", kSoftmax},      {"swiglu", kSwiglu},
    {"adamw", kAdamW}};
// Several rows in a block, a block for a row, and loops over a row; rows that are aligned to 16 bytes, and
// one that is not.
constexpr Extents kExtents[] = {{4096, 768}, {4096, 4096}, {256, 50304}, {256, 50257}};

bool writeAll(const std::filesystem::path &folder) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::ft::FtDialect, func::FuncDialect>();
  for (auto [name, text] : kBodies)
    for (Extents extents : kExtents)
      for (const char *element : {"f32", "bf16", "f16"}) {
        auto module = parseBody(context, text, extents, element);
        FailureOr<PtxKernel> kernel = generatePtx(*module->getOps<func::FuncOp>().begin());
        if (failed(kernel))
          return false;
        std::string file = std::string(name) + "." + element + "." + std::to_string(extents.rows) + "x" +
                           std::to_string(extents.columns) + ".ptx";
        std::ofstream(folder / file, std::ios::binary) << kernel->ptx;
      }
  return true;
}

} // namespace
} // namespace ft::compiler::testing

int main(int count, char **arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: ft_ptx_kernels FOLDER\n");
    return 2;
  }
  return ft::compiler::testing::writeAll(arguments[1]) ? 0 : 1;
}
