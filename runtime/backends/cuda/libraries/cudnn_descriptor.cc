#include "fmt/format.h"
#include "runtime/backends/cuda/libraries/cudnn_graph.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {

absl::StatusOr<CudnnDescriptor> CudnnDescriptor::Create(const CudnnApi& api,
                                                        cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  FT_RETURN_IF_ERROR(api.Check(api.create_descriptor(type, &descriptor), "cudnnBackendCreateDescriptor"));
  return CudnnDescriptor(api, descriptor);
}

CudnnDescriptor& CudnnDescriptor::operator=(CudnnDescriptor&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_ != nullptr) api_->destroy_descriptor(descriptor_);
}

absl::Status CudnnDescriptor::Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                  int64_t count, const void* values) {
  const cudnnStatus_t status = api_->set_attribute(descriptor_, name, type, count, values);
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  return api_->Check(status, fmt::format("cudnnBackendSetAttribute({})", static_cast<int>(name)).c_str());
}

absl::Status CudnnDescriptor::Set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
  const cudnnBackendDescriptor_t descriptor = value.get();
  return Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &descriptor);
}

absl::Status CudnnDescriptor::Set(cudnnBackendAttributeName_t name, int64_t value) {
  return Set(name, CUDNN_TYPE_INT64, 1, &value);
}

absl::StatusOr<int64_t> CudnnDescriptor::Get(cudnnBackendAttributeName_t name,
                                             cudnnBackendAttributeType_t type, int64_t capacity,
                                             void* values) const {
  int64_t count = 0;
  const cudnnStatus_t status = api_->get_attribute(descriptor_, name, type, capacity, &count, values);
  if (status == CUDNN_STATUS_SUCCESS) return count;
  return api_->Check(status, fmt::format("cudnnBackendGetAttribute({})", static_cast<int>(name)).c_str());
}

absl::Status CudnnDescriptor::Finalize(const char* what) {
  const cudnnStatus_t status = api_->finalize(descriptor_);
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  return api_->Check(status, fmt::format("cudnnBackendFinalize({})", what).c_str());
}

}  // namespace ft::cuda
