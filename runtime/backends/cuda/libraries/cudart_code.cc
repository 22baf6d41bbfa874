#include "runtime/backends/cuda/libraries/cudart_code.h"

#include <cuda_runtime_api.h>

#include <array>
#include <string>

#include "absl/container/fixed_array.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/cluster_op.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {
namespace {

// `log`: what the driver's compiler wrote.
absl::Status Failure(cudaError_t error, absl::string_view call, absl::string_view log) {
  cudaGetLastError();  // not for who asks next, the launch of a kernel
  const absl::string_view line = absl::StripAsciiWhitespace(log);
  return absl::InternalError(absl::StrCat(
      "the code of a cluster cannot be loaded: ", call, " failed: ", cudaGetErrorString(error), " (",
      cudaGetErrorName(error), ")", line.empty() ? "" : ": ", line.substr(0, line.find('\n'))));
}

class CudartCode final : public LoadedCode {
 public:
  explicit CudartCode(const ClusterCode& code)
      : kernel_launch_(code.kernel_launch), combine_launch_(code.combine_launch) {}
  ~CudartCode() override {
    if (library_ != nullptr) cudaLibraryUnload(library_);
  }
  CudartCode(const CudartCode&) = delete;
  CudartCode& operator=(const CudartCode&) = delete;

  absl::Status Load(const std::string& ptx) {
    std::array<char, 4096> log = {};
    std::array options = {cudaJitErrorLogBuffer, cudaJitErrorLogBufferSizeBytes};
    std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size())};
    const cudaError_t error = cudaLibraryLoadData(&library_, ptx.c_str(), options.data(), values.data(),
                                                  options.size(), nullptr, nullptr, 0);
    if (error != cudaSuccess) return Failure(error, "cudaLibraryLoadData", log.data());
    FT_RETURN_IF_ERROR(Find("kernel", kernel_launch_, kernel_));
    return Find("combine", combine_launch_, combine_);
  }

  int Launch(absl::Span<void* const> addresses, int64_t spaces, StreamHandle stream) const override {
    absl::FixedArray<void*, kMaxClusterInputs + kMaxClusterResults + kMaxClusterOutputs + kMaxClusterDraws>
        arguments(addresses.size());
    for (size_t i = 0; i < addresses.size(); ++i) arguments[i] = const_cast<void**>(&addresses[i]);
    const int error = LaunchEntry(kernel_, kernel_launch_, spaces, arguments.data(), stream);
    if (error != cudaSuccess || combine_ == nullptr) return error;
    return LaunchEntry(combine_, combine_launch_, 1, arguments.data(), stream);
  }

 private:
  // Asking for attributes loads it now rather than when it is first launched, which may be while a stream is
  // captured.
  absl::Status Find(const char* name, const ClusterCode::Launch& launch, cudaKernel_t& entry) {
    if (launch.blocks == 0) return absl::OkStatus();
    cudaError_t error = cudaLibraryGetKernel(&entry, library_, name);
    if (error != cudaSuccess) return Failure(error, "cudaLibraryGetKernel", name);
    cudaFuncAttributes attributes;
    error = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(entry));
    if (error != cudaSuccess) return Failure(error, "cudaFuncGetAttributes", name);
    if (launch.threads == 0 || launch.threads > static_cast<uint32_t>(attributes.maxThreadsPerBlock))
      return absl::InternalError(
          absl::StrCat("the code of a cluster cannot run: '", name, "' wants ", launch.threads,
                       " threads a block, this device has registers for ", attributes.maxThreadsPerBlock));
    return absl::OkStatus();
  }

  static int LaunchEntry(cudaKernel_t entry, const ClusterCode::Launch& launch, int64_t spaces,
                         void** arguments, StreamHandle stream) {
    const auto blocks = static_cast<unsigned>(launch.blocks * spaces);
    return cudaLaunchKernel(reinterpret_cast<const void*>(entry), dim3(blocks), dim3(launch.threads),
                            arguments, 0, stream);
  }

  const ClusterCode::Launch kernel_launch_, combine_launch_;
  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr, combine_ = nullptr;
};

class CudartCodeLoader final : public CodeLoader {
 public:
  absl::StatusOr<std::shared_ptr<const LoadedCode>> Load(const ClusterCode& code) override {
    auto loaded = std::make_shared<CudartCode>(code);
    FT_RETURN_IF_ERROR(loaded->Load(code.bytes));
    return loaded;
  }
};

}  // namespace

std::unique_ptr<CodeLoader> CreateCudartCodeLoader() { return std::make_unique<CudartCodeLoader>(); }

}  // namespace ft::cuda
