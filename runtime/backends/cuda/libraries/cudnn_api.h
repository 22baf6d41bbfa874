// The functions of cuDNN that we call, found when they are wanted: cuDNN is never linked.
#pragma once

#include <cudnn_graph.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ft::cuda {

struct CudnnApi {
  decltype(&cudnnGetVersion) get_version = nullptr;
  decltype(&cudnnGetErrorString) get_error_string = nullptr;
  decltype(&cudnnGetLastErrorString) get_last_error_string = nullptr;
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnDestroy) destroy = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;

  // "9.19.0"
  std::string Version() const;
  // What cuDNN says of the last call of this thread that failed, in one line; it may be empty.
  std::string LastReason() const;
  // OK for success; Unimplemented for what cuDNN has no kernel for, else Internal, with cuDNN's own reason:
  // "cudnnBackendFinalize(engine): CUDNN_STATUS_NOT_SUPPORTED (<reason>)".
  absl::Status Check(cudnnStatus_t status, const char* what) const;
};

// Errors: FailedPrecondition when libcudnn.so.9 cannot be loaded or is older than 9.10. The library stays
// loaded.
absl::StatusOr<CudnnApi> LoadCudnn();

}  // namespace ft::cuda
