#include "runtime/backends/cuda/platform.h"

#include <memory>
#include <string>
#include <utility>

#include "runtime/backends/cuda/device/choose_device.h"
#include "runtime/base/status_macros.h"
#include "test/doubles/cuda/emulated_driver.h"
#include "test/doubles/cuda/reference_products.h"

namespace ft::cuda {
namespace {

// A library for attention that has a kernel for nothing.
class RefusingAttention final : public FusedAttention {
 public:
  explicit RefusingAttention(const std::string& reason) : refusal_(absl::UnimplementedError(reason)) {}

  absl::StatusOr<std::shared_ptr<FusedAttentionForward>> Forward(const AttentionSpec&, uint64_t) override {
    return refusal_;
  }
  absl::StatusOr<std::shared_ptr<FusedAttentionBackward>> Backward(const AttentionSpec&, uint64_t) override {
    return refusal_;
  }

 private:
  const absl::Status refusal_;
};

}  // namespace

// On the machine that emulation::Machine() describes. There is no library for attention, or one that refuses.
absl::StatusOr<Platform> OpenPlatform(int local_rank, const PlatformOptions& options) {
  if (options.attention == AttentionChoice::kCudnn && emulation::Machine().attention_refusal.empty())
    return absl::FailedPreconditionError("the emulated CUDA platform has no cuDNN");
  Platform platform;
  platform.driver = std::make_unique<emulation::EmulatedDriver>(emulation::Machine());
  FT_ASSIGN_OR_RETURN(ChosenDevice chosen, ChooseDevice(*platform.driver, local_rank, options.share_devices));
  platform.device = chosen.number;
  platform.properties = std::move(chosen.properties);
  const std::string& refusal = emulation::Machine().attention_refusal;
  if (!refusal.empty() && options.attention != AttentionChoice::kOwn)
    platform.attention = std::make_unique<RefusingAttention>(refusal);
  platform.products = std::make_unique<emulation::ReferenceProducts>();
  return platform;
}

}  // namespace ft::cuda
