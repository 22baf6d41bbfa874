#include "runtime/backends/cuda/libraries/cublaslt_api.h"

#include "fmt/format.h"
#include "runtime/backends/cuda/libraries/dynamic_library.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {

absl::Status CublasLtApi::Check(cublasStatus_t status, const char* what, absl::StatusCode code) const {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return absl::Status(code, fmt::format("{} failed: {}", what, get_status_string(status)));
}

absl::StatusOr<CublasLtApi> LoadCublasLt() {
  // The name is that of the headers this is built with: descriptors are not the same in other major versions.
  const char* const name = CUBLAS_VER_MAJOR >= 13 ? "libcublasLt.so.13" : "libcublasLt.so.12";
  FT_ASSIGN_OR_RETURN(const DynamicLibrary library, DynamicLibrary::Open("cuBLASLt", {name}));
  CublasLtApi api;
  FT_RETURN_IF_ERROR(library.Find("cublasLtGetStatusString", api.get_status_string));
  FT_RETURN_IF_ERROR(library.Find("cublasLtCreate", api.create));
  FT_RETURN_IF_ERROR(library.Find("cublasLtDestroy", api.destroy));
  FT_RETURN_IF_ERROR(library.Find("cublasLtMatrixLayoutCreate", api.create_layout));
  FT_RETURN_IF_ERROR(library.Find("cublasLtMatrixLayoutDestroy", api.destroy_layout));
  FT_RETURN_IF_ERROR(library.Find("cublasLtMatmulDescCreate", api.create_operation));
  FT_RETURN_IF_ERROR(library.Find("cublasLtMatmulDescDestroy", api.destroy_operation));
  FT_RETURN_IF_ERROR(library.Find("cublasLtMatmulDescSetAttribute", api.set_operation));
  FT_RETURN_IF_ERROR(library.Find("cublasLtMatmulPreferenceCreate", api.create_preference));
  FT_RETURN_IF_ERROR(library.Find("cublasLtMatmulPreferenceDestroy", api.destroy_preference));
  FT_RETURN_IF_ERROR(library.Find("cublasLtMatmulPreferenceSetAttribute", api.set_preference));
  FT_RETURN_IF_ERROR(library.Find("cublasLtMatmulAlgoGetHeuristic", api.get_heuristic));
  FT_RETURN_IF_ERROR(library.Find("cublasLtMatmul", api.matmul));
  return api;
}

}  // namespace ft::cuda
