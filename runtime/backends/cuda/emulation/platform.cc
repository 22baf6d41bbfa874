#include "runtime/backends/cuda/platform.h"

#include <utility>

#include "runtime/backends/cuda/device/choose_device.h"
#include "runtime/backends/cuda/emulation/emulated_driver.h"
#include "runtime/backends/cuda/emulation/reference_products.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {

// On the machine that emulation::Machine() describes. There is no library for attention.
absl::StatusOr<Platform> OpenPlatform(int local_rank, const PlatformOptions& options) {
  if (options.attention == AttentionChoice::kCudnn)
    return absl::FailedPreconditionError("the emulated CUDA platform has no cuDNN");
  Platform platform;
  platform.driver = std::make_unique<emulation::EmulatedDriver>(emulation::Machine());
  FT_ASSIGN_OR_RETURN(ChosenDevice chosen,
                      ChooseDevice(*platform.driver, local_rank, RanksMayShareDevices()));
  platform.device = chosen.number;
  platform.properties = std::move(chosen.properties);
  platform.products = std::make_unique<emulation::ReferenceProducts>();
  return platform;
}

}  // namespace ft::cuda
