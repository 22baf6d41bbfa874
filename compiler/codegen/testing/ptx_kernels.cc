// Writes the PTX of kernels into a folder, for tools/gpu/spill_report: of tests, NAME.ptx each, or of plans,
// each module once.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "compiler/codegen/ptx_kernel.h"
#include "compiler/codegen/testing/bodies.h"
#include "compiler/codegen/testing/code_test.h"
#include "runtime/base/cluster.h"
#include "runtime/plan/plan_file.h"

namespace ft::compiler::testing {
namespace {

using namespace mlir;

struct Kernels {
  const char *name, *text;
  bool isFlat; // of any shape the same
};
constexpr Kernels kKernels[] = {{"rms_norm", kRmsNorm, false},
                                {"layer_norm", kLayerNorm, false},
                                {"rms_norm_grad", kRmsNormGrad, false},
                                {"softmax", kSoftmax, false},
                                {"picked", kPicked, false},
                                {"bounded", kBounded, false},
                                {"column_sums", kColumnSums, false},
                                {"sums_begun", kSumsBegun, false},
                                {"gelu", kGelu, true},
                                {"swiglu", kSwiglu, true},
                                {"adamw", kAdamW, true}};
// Several rows in a block, a block for a row, and loops over a row; rows that are aligned to 16 bytes, and
// one that is not.
constexpr Extents kExtents[] = {{4096, 768}, {4096, 4096}, {256, 24576}, {256, 50304}, {256, 50257}};

bool write(const std::filesystem::path &folder, const Kernels &kernels, Extents extents,
           const char *element) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::ft::FtDialect, func::FuncDialect>();
  auto module = parseBody(context, kernels.text, extents, element);
  FailureOr<PtxKernel> kernel = generatePtx(*module->getOps<func::FuncOp>().begin());
  if (failed(kernel))
    return false;
  std::string file = std::string(kernels.name) + "." + element + "." + std::to_string(extents.rows) + "x" +
                     std::to_string(extents.columns) + ".ptx";
  std::ofstream stream(folder / file, std::ios::binary);
  stream << kernel->ptx;
  return stream.flush().good();
}

bool writeAll(const std::filesystem::path &folder) {
  for (const Kernels &kernels : kKernels)
    for (Extents extents : ArrayRef(kExtents).take_front(kernels.isFlat ? 1 : std::size(kExtents)))
      for (const char *element : {"f32", "bf16"})
        if (!write(folder, kernels, extents, element))
          return false;
  return true;
}

// PLAN.NUMBER.ptx, the number that of the cluster.
bool writeThoseOf(const std::filesystem::path &plan, const std::filesystem::path &folder,
                  std::set<std::string> &known) {
  absl::StatusOr<PlanFile> file = ReadPlan(plan.string());
  if (!file.ok()) {
    std::fprintf(stderr, "%s\n", std::string(file.status().message()).c_str());
    return false;
  }
  for (int i = 0; i < file->plan.clusters_size(); ++i)
    for (const proto::Cluster::Code &code : file->plan.clusters(i).codes())
      if (code.target() == ClusterCode::kPtx && known.insert(code.code()).second)
        std::ofstream(folder / (plan.stem().string() + "." + std::to_string(i) + ".ptx"), std::ios::binary)
            << code.code();
  return true;
}

} // namespace
} // namespace ft::compiler::testing

int main(int count, char **arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: ft_ptx_kernels FOLDER [PLAN...]\n");
    return 2;
  }
  std::set<std::string> known;
  for (int i = 2; i < count; ++i)
    if (!ft::compiler::testing::writeThoseOf(arguments[i], arguments[1], known))
      return 1;
  return count > 2 || ft::compiler::testing::writeAll(arguments[1]) ? 0 : 1;
}
