#include "runtime/backends/cuda/libraries/cudnn_attention.h"

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "runtime/backends/cuda/libraries/cudnn_attention_plans.h"
#include "runtime/backends/cuda/library_error.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {
namespace {

// What all plans and kernels share; a handle is for one thread at a time.
struct CudnnLibrary {
  explicit CudnnLibrary(CudnnApi functions) : api(functions) {}
  ~CudnnLibrary() {
    if (handle != nullptr) api.destroy(handle);
  }

  CudnnApi api;
  std::mutex mutex;
  cudnnHandle_t handle = nullptr;
};

// One kernel: a plan, and the addresses that it was last run with, as cuDNN wants them.
template <typename Interface, typename Plan, typename Args>
class Runner final : public Interface {
 public:
  Runner(std::shared_ptr<CudnnLibrary> library, std::shared_ptr<const Plan> plan)
      : library_(std::move(library)), plan_(std::move(plan)) {}

  int Launch(const Args& args, StreamHandle stream) override {
    const std::lock_guard<std::mutex> lock(library_->mutex);
    if (!bound_.has_value() || !(args == args_)) {
      absl::StatusOr<CudnnDescriptor> bound = plan_->Bind(args);
      if (!bound.ok()) return LibraryError(LaunchingLibrary::kCudnn, CUDNN_STATUS_BAD_PARAM);
      bound_.emplace(std::move(*bound));
      args_ = args;
    }
    cudnnStatus_t status = library_->api.set_stream(library_->handle, stream);
    if (status == CUDNN_STATUS_SUCCESS) status = plan_->plan().Run(library_->handle, *bound_);
    return status == CUDNN_STATUS_SUCCESS ? 0 : LibraryError(LaunchingLibrary::kCudnn, status);
  }

 private:
  const std::shared_ptr<CudnnLibrary> library_;
  const std::shared_ptr<const Plan> plan_;
  Args args_ = {};
  std::optional<CudnnDescriptor> bound_;
};

using ForwardRunner = Runner<FusedAttentionForward, AttentionForwardPlan, AttentionForwardArgs>;
using BackwardRunner = Runner<FusedAttentionBackward, AttentionBackwardPlan, AttentionBackwardArgs>;

// Plans by spec: building one takes half a second.
template <typename Plan>
class PlanCache {
 public:
  // A plan of the spec that gets along with this much workspace.
  template <typename Build>
  absl::StatusOr<std::shared_ptr<const Plan>> Find(const AttentionSpec& spec, uint64_t workspace_bytes,
                                                   Build build) {
    for (const auto& [known, plan] : plans_) {
      if (known == spec && plan->workspace_bytes() <= workspace_bytes) return plan;
    }
    FT_ASSIGN_OR_RETURN(Plan plan, build());
    plans_.emplace_back(spec, std::make_shared<const Plan>(std::move(plan)));
    return plans_.back().second;
  }

 private:
  std::vector<std::pair<AttentionSpec, std::shared_ptr<const Plan>>> plans_;
};

class CudnnAttention final : public FusedAttention {
 public:
  CudnnAttention(std::shared_ptr<CudnnLibrary> library, int compute_capability, bool deterministic)
      : library_(std::move(library)),
        compute_capability_(compute_capability),
        deterministic_(deterministic) {}

  absl::StatusOr<std::shared_ptr<FusedAttentionForward>> Forward(const AttentionSpec& spec,
                                                                 uint64_t workspace_bytes) override {
    const std::lock_guard<std::mutex> lock(library_->mutex);
    const auto build = [&] {
      return AttentionForwardPlan::Create(library_->api, {library_->handle}, spec, workspace_bytes);
    };
    auto plan = forward_.Find(spec, workspace_bytes, build);
    if (!plan.ok()) return Refusal(plan.status());
    return std::make_shared<ForwardRunner>(library_, *plan);
  }

  absl::StatusOr<std::shared_ptr<FusedAttentionBackward>> Backward(const AttentionSpec& spec,
                                                                   uint64_t workspace_bytes) override {
    const std::lock_guard<std::mutex> lock(library_->mutex);
    const auto build_as = [&](QueryGradient query_gradient) {
      return AttentionBackwardPlan::Create(library_->api, {library_->handle}, compute_capability_, spec,
                                           query_gradient, workspace_bytes);
    };
    const auto build = [&] {
      if (!deterministic_) return build_as(QueryGradient::kAtomic);
      auto ordered = build_as(QueryGradient::kOrdered);
      return ordered.ok() ? std::move(ordered) : build_as(QueryGradient::kProducts);
    };
    auto plan = backward_.Find(spec, workspace_bytes, build);
    if (!plan.ok()) return Refusal(plan.status());
    return std::make_shared<BackwardRunner>(library_, *plan);
  }

 private:
  absl::Status Refusal(const absl::Status& reason) const {
    return absl::UnimplementedError(
        fmt::format("cuDNN {}: {}", library_->api.Version(), std::string(reason.message())));
  }

  const std::shared_ptr<CudnnLibrary> library_;
  const int compute_capability_;
  const bool deterministic_;
  PlanCache<AttentionForwardPlan> forward_;
  PlanCache<AttentionBackwardPlan> backward_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FusedAttention>> CreateCudnnAttention(const DeviceProperties& properties,
                                                                     bool deterministic) {
  FT_ASSIGN_OR_RETURN(const CudnnApi api, LoadCudnn());
  return CreateCudnnAttention(api, properties, deterministic);
}

absl::StatusOr<std::unique_ptr<FusedAttention>> CreateCudnnAttention(const CudnnApi& api,
                                                                     const DeviceProperties& properties,
                                                                     bool deterministic) {
  auto library = std::make_shared<CudnnLibrary>(api);
  if (absl::Status created = api.Check(api.create(&library->handle), "cudnnCreate"); !created.ok()) {
    library->handle = nullptr;
    return absl::FailedPreconditionError(fmt::format("cuDNN {} cannot be used on {}: {}", api.Version(),
                                                     properties.name, std::string(created.message())));
  }
  return std::make_unique<CudnnAttention>(std::move(library), properties.major * 10 + properties.minor,
                                          deterministic);
}

}  // namespace ft::cuda
