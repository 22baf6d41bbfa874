#include "compiler/codegen/plan_code.h"

#include "compiler/codegen/cluster_body.h"
#include "dialects/ft/clusters.h"
#include "runtime/plan/plan_clusters.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ThreadPool.h"

namespace ft::compiler {
namespace {

using namespace mlir;

// One function for each cluster of the plan.
FailureOr<llvm::SmallVector<func::FuncOp>> functionsOf(ModuleOp module, const proto::Plan &plan) {
  llvm::StringMap<int> numbers;
  for (const proto::Cluster &cluster : plan.clusters())
    numbers.try_emplace(cluster.SerializeAsString(), numbers.size());
  llvm::SmallVector<func::FuncOp> functions(plan.clusters_size());
  for (func::FuncOp function : mlir::ft::clustersOf(module)) {
    FailureOr<ClusterBody> body = clusterBodyOf(function);
    if (failed(body))
      return failure();
    auto found = numbers.find(ToProto(*body).SerializeAsString());
    if (found == numbers.end())
      return function.emitOpError("is no cluster of the plan");
    functions[found->second] = function;
  }
  return functions;
}

} // namespace

LogicalResult addCode(ModuleOp module, llvm::ArrayRef<X86Level> levels, proto::Plan &plan) {
  auto functions = functionsOf(module, plan);
  if (failed(functions))
    return failure();
  using Codes = llvm::SmallVector<FailureOr<GeneratedKernel>>;
  llvm::SmallVector<Codes> codes(functions->size(),
                                 Codes(levels.size(), FailureOr<GeneratedKernel>(failure())));
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency());
  for (auto [number, function] : llvm::enumerate(*functions))
    for (auto [i, level] : llvm::enumerate(levels))
      pool.async(
          [&codes, number, i, function, level] { codes[number][i] = generateKernel(function, level); });
  pool.wait();
  for (auto [number, ofCluster] : llvm::enumerate(codes))
    for (auto [level, kernel] : llvm::zip_equal(levels, ofCluster)) {
      if (failed(kernel))
        return failure();
      proto::Cluster::Code &code = *plan.mutable_clusters(number)->add_codes();
      code.set_target(nameOf(level).str());
      code.set_code(std::move(kernel->code));
      code.set_kernel(kernel->kernelOffset);
      code.set_combine(kernel->combineOffset);
    }
  return success();
}

} // namespace ft::compiler
