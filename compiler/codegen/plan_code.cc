#include "compiler/codegen/plan_code.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/kernel.h"
#include "compiler/codegen/ptx_kernel.h"
#include "runtime/base/glob.h"
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

struct Target {
  std::string name;
  llvm::unique_function<llvm::Expected<proto::Cluster::Code>(const ClusterBody &) const> make;
};

// All kinds of machines that code is made for.
std::vector<Target> allTargets() {
  std::vector<Target> targets;
  for (X86Level level : kX86Levels)
    targets.push_back({nameOf(level).str(), [level](const ClusterBody &body) { return x86Of(body, level); }});
  targets.push_back({std::string(ClusterCode::kPtx), ptxOf});
  return targets;
}

absl::StatusOr<std::vector<Target>> targetsOf(const std::vector<std::string> &wanted) {
  if (wanted == std::vector<std::string>{"none"})
    return std::vector<Target>();
  std::vector<Target> targets = allTargets();
  if (wanted == std::vector<std::string>{"all"})
    return targets;
  for (const std::string &pattern : wanted)
    if (llvm::none_of(targets, [&](const Target &target) { return MatchesGlob(pattern, target.name); }))
      return absl::InvalidArgumentError(absl::StrCat("code: '", pattern,
                                                     "' matches no machine that code is made for: x86-64-v2, "
                                                     "x86-64-v3, x86-64-v4, ptx; or all, or none"));
  llvm::erase_if(targets, [&](const Target &target) {
    return llvm::none_of(wanted,
                         [&](const std::string &pattern) { return MatchesGlob(pattern, target.name); });
  });
  return targets;
}

absl::StatusOr<proto::Cluster::Code> codeOf(const ClusterBody &body, const Target &target) {
  llvm::Expected<proto::Cluster::Code> code = target.make(body);
  if (!code)
    return absl::InvalidArgumentError(
        absl::StrCat("no code can be made of it: ", llvm::toString(code.takeError())));
  return *std::move(code);
}

absl::Status makeCodeFor(proto::Plan &plan, const std::vector<Target> &kinds) {
  FT_ASSIGN_OR_RETURN(const auto clusters, ClustersOf(plan));
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

} // namespace

std::string producer() { return "ftc " FT_VERSION ", LLVM " LLVM_VERSION_STRING; }

absl::Status makeCode(proto::Plan &plan, const std::vector<std::string> &wanted) {
  FT_ASSIGN_OR_RETURN(const std::vector<Target> kinds, targetsOf(wanted));
  return makeCodeFor(plan, kinds);
}

absl::Status compareCode(const proto::Plan &plan) {
  proto::Plan made;
  *made.mutable_clusters() = plan.clusters();
  std::set<std::string> has; // names, which a plan may have made up
  for (const proto::Cluster &cluster : plan.clusters())
    for (const proto::Cluster::Code &code : cluster.codes())
      has.insert(code.target());
  std::vector<Target> kinds = allTargets();
  llvm::erase_if(kinds, [&](const Target &target) { return !has.contains(target.name); });
  FT_RETURN_IF_ERROR(makeCodeFor(made, kinds));
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
