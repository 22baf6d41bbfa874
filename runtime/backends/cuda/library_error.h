// What a launch returns when a library of NVIDIA's fails: a number behind all values of cudaError_t that
// keeps the library's own status.
#pragma once

#include <string>

namespace ft::cuda {

enum class LaunchingLibrary { kCublasLt = 1, kCudnn = 2 };

inline constexpr int kLibraryErrors = 1 << 24;  // statuses of the libraries are below

constexpr int LibraryError(LaunchingLibrary library, int status) {
  return static_cast<int>(library) * kLibraryErrors + status;
}

// "cublasLtMatmul returned cublasStatus_t 13"; empty for a cudaError_t.
inline std::string DescribeLibraryError(int error) {
  const std::string status = std::to_string(error % kLibraryErrors);
  switch (error / kLibraryErrors) {
    case static_cast<int>(LaunchingLibrary::kCublasLt):
      return "cublasLtMatmul returned cublasStatus_t " + status;
    case static_cast<int>(LaunchingLibrary::kCudnn):
      return "cudnnBackendExecute returned cudnnStatus_t " + status;
  }
  return "";
}

}  // namespace ft::cuda
