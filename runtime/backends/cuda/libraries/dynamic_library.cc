#include "runtime/backends/cuda/libraries/dynamic_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/backends/cuda/libraries/library_folders.h"

namespace ft::cuda {
namespace {

// With a slash at the end: one copies program and libraries to a machine as they are built, side by side or
// as bin and lib.
std::vector<std::string> FoldersOfProgram() {
  std::array<char, PATH_MAX> path;
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) return {};
  const std::string program(path.data(), static_cast<size_t>(length));
  const std::string folder = program.substr(0, program.rfind('/') + 1);
  return {folder, folder + "../lib/"};
}

// Where a library may lie that the loader does not find, the nearest to this program first.
std::vector<std::string> OtherFolders() {
  std::vector<std::string> folders = FoldersOfProgram();
  for (std::string& folder : WheelFolders(PythonVariablesOfProcess())) folders.push_back(std::move(folder));
  for (std::string& folder : ToolkitFolders("/usr/local")) folders.push_back(std::move(folder));
  return folders;
}

// What dlerror said last, as one line.
std::string LoaderError() {
  const char* error = dlerror();
  std::string text = error == nullptr ? "no reason given" : error;
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

}  // namespace

absl::StatusOr<DynamicLibrary> DynamicLibrary::Open(const std::string& product,
                                                    absl::Span<const char* const> names) {
  std::string reason;  // of the first name: the one that is wanted most
  for (const char* name : names) {
    // Local: two versions of a library in one process, PyTorch's and ours, must not see each other.
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return DynamicLibrary(handle, name, product);
    if (reason.empty()) reason = LoaderError();
  }
  for (const std::string& folder : OtherFolders()) {
    for (const char* name : names) {
      const std::string path = folder + name;
      if (access(path.c_str(), R_OK) != 0) continue;
      if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
        return DynamicLibrary(handle, path, product);
      reason = LoaderError();  // it is there and yet refused: that is the one to tell
    }
  }
  return absl::FailedPreconditionError(absl::StrCat("cannot load ", absl::StrJoin(names, " or "), " (",
                                                    product, "): ", reason,
                                                    "; install it or put its folder on LD_LIBRARY_PATH"));
}

absl::Status DynamicLibrary::FindAddress(const char* symbol, void*& address) const {
  address = dlsym(handle_, symbol);
  if (address != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(name_, " (", product_, ") has no ", symbol, "; a newer one is needed"));
}

}  // namespace ft::cuda
