#include "compiler/codegen/plan_code.h"

#include "absl/strings/str_cat.h"
#include "compiler/codegen/kernel.h"
#include "compiler/codegen/ptx_kernel.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/plan_clusters.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/ThreadPool.h"

namespace ft::compiler {
namespace {

llvm::Expected<proto::Cluster::Code> x86Of(const ClusterBody &body, X86Level level) {
  llvm::Expected<GeneratedKernel> kernel = generateKernel(body, level);
  if (!kernel)
    return kernel.takeError();
  proto::Cluster::Code code;
  code.set_target(nameOf(level).str());
  code.set_code(std::move(kernel->code));
  code.set_kernel(kernel->kernelOffset);
  code.set_combine(kernel->combineOffset);
  return code;
}

void setLaunch(const GpuLaunch &launch, proto::Cluster::Code::Launch &to) {
  to.set_blocks(static_cast<uint32_t>(launch.blocks));
  to.set_threads(static_cast<uint32_t>(launch.threads));
}

llvm::Expected<proto::Cluster::Code> ptxOf(const ClusterBody &body) {
  llvm::Expected<PtxKernel> kernel = generatePtx(body);
  if (!kernel)
    return kernel.takeError();
  proto::Cluster::Code code;
  code.set_target(ClusterCode::kPtx);
  code.set_code(std::move(kernel->ptx));
  setLaunch(kernel->interface.kernel, *code.mutable_kernel_launch());
  if (kernel->interface.combine.blocks == 0)
    return code;
  setLaunch(kernel->interface.combine, *code.mutable_combine_launch());
  code.set_partial_bytes(kernel->interface.partialBytes);
  return code;
}

using Target = llvm::unique_function<llvm::Expected<proto::Cluster::Code>(const ClusterBody &) const>;

// All kinds of machines that code is made for.
llvm::SmallVector<Target> targets() {
  llvm::SmallVector<Target> targets;
  for (X86Level level : kX86Levels)
    targets.push_back([level](const ClusterBody &body) { return x86Of(body, level); });
  targets.push_back(ptxOf);
  return targets;
}

absl::StatusOr<proto::Cluster::Code> codeOf(const ClusterBody &body, const Target &target) {
  llvm::Expected<proto::Cluster::Code> code = target(body);
  if (!code)
    return absl::InvalidArgumentError(
        absl::StrCat("no code can be made of it: ", llvm::toString(code.takeError())));
  return *std::move(code);
}

} // namespace

std::string producer() { return "ftc " FT_VERSION ", LLVM " LLVM_VERSION_STRING; }

absl::Status makeCode(proto::Plan &plan) {
  FT_ASSIGN_OR_RETURN(const auto clusters, ClustersOf(plan));
  const llvm::SmallVector<Target> kinds = targets();
  using Codes = llvm::SmallVector<absl::StatusOr<proto::Cluster::Code>>;
  llvm::SmallVector<Codes> codes(clusters.size(), Codes(kinds.size()));
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency());
  for (size_t number = 0; number < clusters.size(); ++number)
    for (size_t i = 0; i < kinds.size(); ++i)
      pool.async([&, number, i] { codes[number][i] = codeOf(clusters[number]->body, kinds[i]); });
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
