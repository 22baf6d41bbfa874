#include "runtime/backends/cuda/device/choose_device.h"

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {
namespace {

constexpr int kOldestMajor = 8;

// Hides devices from CUDA; the usual reason why there are fewer than one thinks.
std::string VisibleDevices() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible == nullptr ? "" : absl::StrCat(" (CUDA_VISIBLE_DEVICES is \"", visible, "\")");
}

absl::Status TooFew(int local_rank, int devices) {
  return absl::FailedPreconditionError(
      absl::StrCat("LOCAL_RANK ", local_rank, " needs CUDA device ", local_rank, ", but there are ", devices,
                   " CUDA devices, 0 to ", devices - 1, VisibleDevices(), "; start at most ", devices,
                   " ranks on this host, show each rank one device of its own, or let ranks share "
                   "them (--share-gpus=on, with NCCL 2.30)"));
}

}  // namespace

absl::StatusOr<ChosenDevice> ChooseDevice(Driver& driver, int local_rank, bool may_share) {
  FT_ASSIGN_OR_RETURN(const int devices, driver.CountDevices());
  if (devices == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is a CUDA driver, but no CUDA device", VisibleDevices(), "; use --device=cpu"));
  }
  if (local_rank >= devices && devices > 1 && !may_share) return TooFew(local_rank, devices);
  ChosenDevice chosen{.number = local_rank % devices, .properties = {}};
  FT_ASSIGN_OR_RETURN(chosen.properties, driver.Properties(chosen.number));
  const DeviceProperties& p = chosen.properties;
  const std::string device = absl::StrCat("CUDA device ", chosen.number, " (", p.name, ")");
  if (p.major < kOldestMajor) {
    return absl::FailedPreconditionError(absl::StrCat(device, " has compute capability ", p.major, ".",
                                                      p.minor, ", too old: ", kOldestMajor,
                                                      ".0 or newer is needed; use --device=cpu"));
  }
  if (const absl::Status status = driver.SetDevice(chosen.number); !status.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(device, " cannot be used, is it busy or in exclusive mode? ", status.message()));
  }
  return chosen;
}

}  // namespace ft::cuda
