#include "compiler/codegen/plan_code.h"

#include "absl/strings/str_cat.h"
#include "compiler/codegen/function_of_body.h"
#include "compiler/codegen/kernel.h"
#include "dialects/ft/dialect.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/plan_clusters.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/ThreadPool.h"

namespace ft::compiler {
namespace {

using namespace mlir;

absl::StatusOr<proto::Cluster::Code> codeOf(const ClusterBody &body, X86Level level) {
  DialectRegistry registry;
  registry.insert<func::FuncDialect, mlir::ft::FtDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::string error;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    error = diagnostic.str();
    return success();
  });
  OwningOpRef<func::FuncOp> function = functionOf(body, context);
  FailureOr<GeneratedKernel> kernel = failure();
  if (function)
    kernel = generateKernel(*function, level);
  if (failed(kernel))
    return absl::InvalidArgumentError(absl::StrCat("no code can be made of it: ", error));
  proto::Cluster::Code code;
  code.set_target(nameOf(level).str());
  code.set_code(std::move(kernel->code));
  code.set_kernel(kernel->kernelOffset);
  code.set_combine(kernel->combineOffset);
  return code;
}

} // namespace

std::string producer() { return "ftc " FT_VERSION ", LLVM " LLVM_VERSION_STRING; }

absl::Status makeCode(proto::Plan &plan) {
  FT_ASSIGN_OR_RETURN(const auto clusters, ClustersOf(plan));
  using Codes = llvm::SmallVector<absl::StatusOr<proto::Cluster::Code>>;
  llvm::SmallVector<Codes> codes(clusters.size(), Codes(std::size(kX86Levels)));
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency());
  for (size_t number = 0; number < clusters.size(); ++number)
    for (size_t i = 0; i < std::size(kX86Levels); ++i)
      pool.async([&, number, i] { codes[number][i] = codeOf(clusters[number]->body, kX86Levels[i]); });
  pool.wait();
  for (size_t number = 0; number < clusters.size(); ++number) {
    proto::Cluster &cluster = *plan.mutable_clusters(static_cast<int>(number));
    cluster.clear_codes();
    for (absl::StatusOr<proto::Cluster::Code> &code : codes[number]) {
      if (!code.ok())
        return absl::InvalidArgumentError(absl::StrCat("cluster ", number, ": ", code.status().message()));
      *cluster.add_codes() = *std::move(code);
    }
  }
  return absl::OkStatus();
}

absl::Status compareCode(const proto::Plan &plan) {
  proto::Plan made;
  *made.mutable_clusters() = plan.clusters();
  FT_RETURN_IF_ERROR(makeCode(made));
  for (int number = 0; number < plan.clusters_size(); ++number)
    for (const proto::Cluster::Code &code : plan.clusters(number).codes()) {
      bool same = llvm::any_of(made.clusters(number).codes(), [&](const proto::Cluster::Code &other) {
        return other.SerializeAsString() == code.SerializeAsString();
      });
      if (!same)
        return absl::InvalidArgumentError(absl::StrCat("cluster ", number, ": its code for ", code.target(),
                                                       " is not what this compiler makes of its body"));
    }
  return absl::OkStatus();
}

} // namespace ft::compiler
