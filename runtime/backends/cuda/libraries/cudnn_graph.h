// A computation as cuDNN's graph interface wants it: tensors, operations between them, an execution plan.
//
// Tensors have four dimensions. A virtual tensor exists only within the fused kernel. A plan is made either
// for the device of a handle, or for a device that is only described (then it can be looked at, not run).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/backends/cuda/libraries/cudnn_api.h"

namespace ft::cuda {

class CudnnDescriptor {
 public:
  static absl::StatusOr<CudnnDescriptor> Create(const CudnnApi& api, cudnnBackendDescriptorType_t type);
  CudnnDescriptor(CudnnDescriptor&& other) noexcept
      : api_(other.api_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept;
  ~CudnnDescriptor();

  cudnnBackendDescriptor_t get() const { return descriptor_; }
  absl::Status Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                   const void* values);
  absl::Status Set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  absl::Status Set(cudnnBackendAttributeName_t name, int64_t value);
  // At most `capacity` values; the number of them.
  absl::StatusOr<int64_t> Get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                              int64_t capacity, void* values) const;
  absl::Status Finalize(const char* what);

 private:
  CudnnDescriptor(const CudnnApi& api, cudnnBackendDescriptor_t descriptor)
      : api_(&api), descriptor_(descriptor) {}

  const CudnnApi* api_;
  cudnnBackendDescriptor_t descriptor_;
};

// Where a plan is to run; exactly one is set.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  const CudnnDescriptor* device = nullptr;  // CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR
};

// One of a graph's engines with choices for its knobs.
struct CudnnEngine {
  int64_t id = 0;
  std::vector<std::pair<cudnnBackendKnobType_t, int64_t>> knobs;
};

using TensorId = int64_t;

// A plan and what belongs to it.
class CudnnPlan {
 public:
  uint64_t workspace_bytes() const { return workspace_bytes_; }
  const std::string& engine() const { return engine_; }  // "engine 6"

  // What a run needs: the address of every tensor that is neither virtual nor a scalar. Allocates.
  absl::StatusOr<CudnnDescriptor> Bind(absl::Span<const std::pair<TensorId, const void*>> tensors,
                                       void* workspace) const;
  // Enqueues on the handle's stream.
  cudnnStatus_t Run(cudnnHandle_t handle, const CudnnDescriptor& bound) const {
    return api_->execute(handle, plan_.get(), bound.get());
  }

 private:
  friend class CudnnGraph;
  CudnnPlan(const CudnnApi& api, CudnnDescriptor plan, uint64_t workspace_bytes, std::string engine)
      : api_(&api), plan_(std::move(plan)), workspace_bytes_(workspace_bytes), engine_(std::move(engine)) {}

  const CudnnApi* api_;
  std::vector<CudnnDescriptor> parts_;  // what the plan was made of; nothing says that it may go first
  CudnnDescriptor plan_;
  uint64_t workspace_bytes_;
  std::string engine_;
  std::shared_ptr<const std::vector<std::pair<TensorId, float>>> scalars_;
};

class CudnnGraph {
 public:
  using Dims = std::array<int64_t, 4>;

  // `api` must outlive the graph and its plans.
  explicit CudnnGraph(const CudnnApi& api) : api_(api) {}

  // Every function below returns at once after the first error, which Plan reports.
  TensorId Tensor(const Dims& dims, const Dims& strides, cudnnDataType_t type);
  TensorId Virtual(const Dims& dims, const Dims& strides, cudnnDataType_t type = CUDNN_DATA_FLOAT);
  TensorId Scalar(float value);

  // c[.., m, n] = a[.., m, k] b[.., k, n], sums in f32; b's second dimension may divide a's (shared heads).
  void Matmul(TensorId a, TensorId b, TensorId c);
  // The result, virtual and f32 where not given, has a's dimensions.
  TensorId Pointwise(cudnnPointwiseMode_t mode, TensorId a);
  TensorId Pointwise(cudnnPointwiseMode_t mode, TensorId a, TensorId b);
  void PointwiseInto(cudnnPointwiseMode_t mode, TensorId a, TensorId y);
  void PointwiseInto(cudnnPointwiseMode_t mode, TensorId a, TensorId b, TensorId y);
  // i32: each element's position along `axis` of a.
  TensorId Index(TensorId a, int64_t axis);
  // Booleans a >= b.
  TensorId AtLeast(TensorId a, TensorId b);
  // Booleans a > b.
  TensorId Greater(TensorId a, TensorId b);
  // condition ? a : b
  TensorId Select(TensorId condition, TensorId a, TensorId b);
  // Over the dimensions in which y is 1 (or, for shared heads, a fraction of x).
  void Reduce(cudnnReduceTensorOp_t operation, TensorId x, TensorId y);
  // The same elements under other dimensions and strides: a transposed view.
  void Reshape(TensorId x, TensorId y);

  // The first plan, of `engines` and then of what cuDNN's heuristics propose, best first, that cuDNN can make
  // and that needs at most this much workspace. Errors: cuDNN's reason for the first refusal, or
  // Unimplemented "needs 4096 bytes of workspace, there are 1024". The graph is used up by a plan.
  absl::StatusOr<CudnnPlan> Plan(const CudnnTarget& target, uint64_t workspace_bytes,
                                 absl::Span<const CudnnEngine> engines, bool heuristics);

 private:
  struct TensorInfo {
    Dims dims, strides;
    CudnnDescriptor descriptor;
  };

  TensorId AddTensor(const Dims& dims, const Dims& strides, cudnnDataType_t type, bool is_virtual,
                     bool by_value);
  TensorId Like(TensorId a, cudnnDataType_t type);
  absl::Status AddPointwise(cudnnPointwiseMode_t mode, cudnnDataType_t compute, int64_t axis, TensorId a,
                            TensorId b, TensorId t, TensorId y);
  absl::Status AddMatmul(TensorId a, TensorId b, TensorId c);
  absl::Status AddReduction(cudnnReduceTensorOp_t operation, TensorId x, TensorId y);
  absl::Status AddReshape(TensorId x, TensorId y);
  absl::Status Connect(CudnnDescriptor& operation, cudnnBackendAttributeName_t name, TensorId tensor);
  absl::Status Finish(CudnnDescriptor& operation, const char* what);
  void Keep(absl::Status status);
  absl::Status FinishGraph(const CudnnTarget& target);
  absl::StatusOr<CudnnPlan> PlanOf(const CudnnTarget& target, CudnnDescriptor config,
                                   uint64_t workspace_bytes);
  void GiveParts(CudnnPlan& plan);
  absl::StatusOr<std::vector<CudnnDescriptor>> Propose(const CudnnTarget& target,
                                                       cudnnBackendHeurMode_t mode);
  absl::StatusOr<CudnnDescriptor> Configure(const CudnnTarget& target, const CudnnEngine& engine);

  const CudnnApi& api_;
  absl::Status status_;
  std::vector<TensorInfo> tensors_;  // ids count from 1
  std::vector<std::pair<TensorId, float>> scalars_;
  std::vector<CudnnDescriptor> parts_;  // descriptors that operations point at
  std::vector<CudnnDescriptor> operations_;
  std::optional<CudnnDescriptor> graph_;
};

}  // namespace ft::cuda
