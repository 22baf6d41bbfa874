#include "runtime/backends/cpu/device/cpu_host_kernels.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/backends/cpu/cpu_kernel.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

class CpuTask final : public HostTask {
 public:
  explicit CpuTask(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}
  absl::Status Run() override {
    static_cast<CpuKernel&>(*kernel_).Run();
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<Kernel> kernel_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HostTask>> CpuHostKernels::Create(const std::string& name,
                                                                 const KernelOperands& operands,
                                                                 const KernelAttributes& attributes) {
  const KernelFactory factory = kernels_.Find(name);
  if (factory == nullptr)
    return absl::FailedPreconditionError(absl::StrCat("the host's processors have no kernel '", name, "'"));
  FT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, factory(operands, attributes, environment_));
  return std::make_unique<CpuTask>(std::move(kernel));
}

}  // namespace ft
