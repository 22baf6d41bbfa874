// The provider of programs with CUDA: the runtime, cuBLASLt, cuDNN, NVML and NVTX of this machine.
#include "runtime/backends/cuda/platform.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/backends/cuda/device/choose_device.h"
#include "runtime/backends/cuda/libraries/cublaslt_products.h"
#include "runtime/backends/cuda/libraries/cudart_code.h"
#include "runtime/backends/cuda/libraries/cudart_driver.h"
#include "runtime/backends/cuda/libraries/cudnn_attention.h"
#include "runtime/backends/cuda/libraries/nvml.h"
#include "runtime/backends/cuda/libraries/nvtx.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {
namespace {

absl::StatusOr<std::unique_ptr<FusedAttention>> OpenAttention(const DeviceProperties& properties,
                                                              const PlatformOptions& options) {
  if (options.attention == AttentionChoice::kOwn) return nullptr;
  absl::StatusOr<std::unique_ptr<FusedAttention>> attention =
      CreateCudnnAttention(properties, options.deterministic);
  if (attention.ok()) return attention;
  return absl::Status(attention.status().code(),
                      absl::StrCat(attention.status().message(), "; --attention=own does without cuDNN"));
}

}  // namespace

absl::StatusOr<Platform> OpenPlatform(int local_rank, const PlatformOptions& options) {
  Platform platform;
  platform.driver = std::make_unique<CudartDriver>();
  FT_ASSIGN_OR_RETURN(ChosenDevice chosen, ChooseDevice(*platform.driver, local_rank, options.share_devices));
  platform.device = chosen.number;
  platform.properties = std::move(chosen.properties);
  FT_ASSIGN_OR_RETURN(platform.products, CreateCublasLtProducts(*platform.driver, platform.properties,
                                                                options.allow_tf32, options.deterministic));
  FT_ASSIGN_OR_RETURN(platform.attention, OpenAttention(platform.properties, options));
  platform.code = CreateCudartCodeLoader();
  platform.ranges = CreateNvtxRanges();
  platform.utilization = UtilizationMeter(platform.properties.pci_address);
  return platform;
}

}  // namespace ft::cuda
