// loss_count.
#include <limits>

#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/kernels/loss_count/cuda_device.h"
#include "runtime/kernels/loss_count/operands.h"

namespace ft::cuda {
namespace {

KernelOr MakeLossCount(const KernelContext& context) {
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max() - 65536;  // counted in 32 bits
  FT_ASSIGN_OR_RETURN(const LossCountOperands read, ReadLossCount(context.operands));
  if (read.targets.elements() > kLimit)
    return absl::InvalidArgumentError(fmt::format("{} targets are too many", read.targets.elements()));
  return MakeKernel([read](StreamHandle stream) {
    return LossCount(read.loss, read.targets.as<int32_t>(), static_cast<int>(read.targets.elements()),
                     read.sum, stream);
  });
}

}  // namespace

void RegisterLossCount(KernelTable& table) { table.Add("loss_count", MakeLossCount); }

}  // namespace ft::cuda
