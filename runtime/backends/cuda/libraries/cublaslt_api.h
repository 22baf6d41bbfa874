// The functions of cuBLASLt that we call, found when they are wanted: cuBLASLt is never linked. Tests put
// their own functions in the table.
#pragma once

#include <cublasLt.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ft::cuda {

struct CublasLtApi {
  decltype(&cublasLtGetStatusString) get_status_string = nullptr;
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) create_layout = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout = nullptr;
  decltype(&cublasLtMatmulDescCreate) create_operation = nullptr;
  decltype(&cublasLtMatmulDescDestroy) destroy_operation = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) get_heuristic = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;

  // OK for success, else `code` "cublasLtMatmul failed: <reason>".
  absl::Status Check(cublasStatus_t status, const char* what,
                     absl::StatusCode code = absl::StatusCode::kInternal) const;
};

// Errors: FailedPrecondition. The library stays loaded.
absl::StatusOr<CublasLtApi> LoadCublasLt();

}  // namespace ft::cuda
