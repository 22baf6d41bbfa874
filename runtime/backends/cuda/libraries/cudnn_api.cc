#include "runtime/backends/cuda/libraries/cudnn_api.h"

#include <array>
#include <string_view>

#include "fmt/format.h"
#include "runtime/backends/cuda/libraries/dynamic_library.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {
namespace {

// Before 9.6 the caller had to clear buffers of attention's backward, before 9.10 masks were not to be
// infinite.
constexpr size_t kOldestVersion = 91000;

std::string VersionText(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

// cuDNN's account of a refusal is a list, one line for each engine and each caller within: the first reason.
std::string_view FirstReason(std::string_view text) {
  constexpr std::string_view kMark = "Reason: ";
  if (const size_t mark = text.find(kMark); mark != std::string_view::npos)
    text.remove_prefix(mark + kMark.size());
  return text.substr(0, text.find('\n'));
}

}  // namespace

std::string CudnnApi::Version() const { return VersionText(get_version()); }

std::string CudnnApi::LastReason() const {
  std::array<char, 4096> text = {};
  get_last_error_string(text.data(), text.size() - 1);
  return std::string(FirstReason(text.data()));
}

absl::Status CudnnApi::Check(cudnnStatus_t status, const char* what) const {
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  const std::string text = fmt::format("{}: {} ({})", what, get_error_string(status), LastReason());
  const bool unsupported = CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED;
  return unsupported ? absl::UnimplementedError(text) : absl::InternalError(text);
}

absl::StatusOr<CudnnApi> LoadCudnn() {
  FT_ASSIGN_OR_RETURN(const DynamicLibrary library, DynamicLibrary::Open("cuDNN", {"libcudnn.so.9"}));
  CudnnApi api;
  FT_RETURN_IF_ERROR(library.Find("cudnnGetVersion", api.get_version));
  if (api.get_version() < kOldestVersion) {
    return absl::FailedPreconditionError(fmt::format("cuDNN {} is too old; {} or newer is needed",
                                                     api.Version(), VersionText(kOldestVersion)));
  }
  FT_RETURN_IF_ERROR(library.Find("cudnnGetErrorString", api.get_error_string));
  FT_RETURN_IF_ERROR(library.Find("cudnnGetLastErrorString", api.get_last_error_string));
  FT_RETURN_IF_ERROR(library.Find("cudnnCreate", api.create));
  FT_RETURN_IF_ERROR(library.Find("cudnnDestroy", api.destroy));
  FT_RETURN_IF_ERROR(library.Find("cudnnSetStream", api.set_stream));
  FT_RETURN_IF_ERROR(library.Find("cudnnBackendCreateDescriptor", api.create_descriptor));
  FT_RETURN_IF_ERROR(library.Find("cudnnBackendDestroyDescriptor", api.destroy_descriptor));
  FT_RETURN_IF_ERROR(library.Find("cudnnBackendSetAttribute", api.set_attribute));
  FT_RETURN_IF_ERROR(library.Find("cudnnBackendGetAttribute", api.get_attribute));
  FT_RETURN_IF_ERROR(library.Find("cudnnBackendFinalize", api.finalize));
  FT_RETURN_IF_ERROR(library.Find("cudnnBackendExecute", api.execute));
  return api;
}

}  // namespace ft::cuda
