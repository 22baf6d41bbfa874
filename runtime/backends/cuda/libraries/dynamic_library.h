// A shared library that is looked for when it is wanted rather than when the program starts, so that one
// program starts on machines with and without it.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace ft::cuda {

// A loaded library. It is never unloaded: libraries of NVIDIA keep threads and exit handlers. Copies are
// cheap.
class DynamicLibrary {
 public:
  // The first of `names` ("libcublasLt.so.13", "libcublasLt.so.12") that can be loaded: from where the
  // dynamic loader looks, else from the folder of this program and its ../lib, else from wheels of the active
  // Python environment, else from a toolkit (library_folders.h). `product` ("cuBLASLt") is for the error.
  // Errors: FailedPrecondition "cannot load libcudnn.so.9 (cuDNN): <reason>; install it or put its folder on
  // LD_LIBRARY_PATH".
  static absl::StatusOr<DynamicLibrary> Open(const std::string& product, absl::Span<const char* const> names);

  // Sets `function`, a pointer to a function of the type that the library's header declares. Errors:
  // FailedPrecondition "libcudnn.so.9 (cuDNN) has no cudnnBackendExecute; a newer one is needed".
  template <typename F>
  absl::Status Find(const char* symbol, F*& function) const {
    void* address = nullptr;
    absl::Status status = FindAddress(symbol, address);
    function = reinterpret_cast<F*>(address);
    return status;
  }

  // The name of those that was loaded, with its folder where the loader did not find it.
  const std::string& name() const { return name_; }

 private:
  DynamicLibrary(void* handle, std::string name, std::string product)
      : handle_(handle), name_(std::move(name)), product_(std::move(product)) {}
  absl::Status FindAddress(const char* symbol, void*& address) const;

  void* handle_;
  std::string name_;
  std::string product_;
};

}  // namespace ft::cuda
