#include "tools/ftckpt/plain_tensors.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/printable.h"
#include "runtime/base/regular_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/safetensors_header.h"
#include "runtime/checkpoint/safetensors_index.h"

namespace ft::ckpt {
namespace {

absl::Status ReadFully(const OpenFile& file, const std::string& path, uint64_t offset, void* out,
                       uint64_t bytes) {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = pread(file.fd(), to, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return PosixError(errno, "read", path);
    if (got == 0) return absl::DataLossError(fmt::format("'{}' became shorter while it was read", path));
    to += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
  return absl::OkStatus();
}

class PlainTensors : public TensorSide {
 public:
  absl::Status Open(const std::string& path) {
    const bool is_index = path.ends_with(".json");
    FT_RETURN_IF_ERROR(is_index ? AddIndex(path) : AddFile(path));
    title_ = fmt::format("{} (safetensors, {} file{})", path, paths_.size(), paths_.size() == 1 ? "" : "s");
    return absl::OkStatus();
  }

  absl::Status Read(size_t tensor, uint64_t first, uint64_t count, void* out) override {
    const auto [file, offset] = places_[tensor];
    const uint64_t size = SizeOf(tensors_[tensor].dtype);
    if (open_number_ != file) {
      FT_ASSIGN_OR_RETURN(open_, OpenRegularFile(paths_[file], "read"));
      open_number_ = file;
    }
    return ReadFully(open_, paths_[file], offset + first * size, out, count * size);
  }

 private:
  absl::Status AddFile(const std::string& path) {
    FT_ASSIGN_OR_RETURN(const OpenFile file, OpenRegularFile(path, "read"));
    uint64_t header_bytes = 0;
    constexpr uint64_t kLength = sizeof(header_bytes);
    if (file.bytes() < kLength)
      return absl::DataLossError(
          fmt::format("'{}' is no safetensors file: it has {} bytes", path, file.bytes()));
    FT_RETURN_IF_ERROR(ReadFully(file, path, 0, &header_bytes, kLength));
    if (header_bytes > kMaxSafetensorsHeaderBytes || header_bytes > file.bytes() - kLength)
      return absl::DataLossError(fmt::format(
          "'{}' is no safetensors file, or cut short: its header would have {} bytes, and it has {}", path,
          header_bytes, file.bytes()));
    std::string header(header_bytes, '\0');
    FT_RETURN_IF_ERROR(ReadFully(file, path, kLength, header.data(), header_bytes));
    const uint64_t data = kLength + header_bytes;
    FT_ASSIGN_OR_RETURN(std::vector<HeaderTensor> tensors,
                        ParseSafetensorsHeader(header, file.bytes() - data, path));
    const size_t number = paths_.size();
    paths_.push_back(path);
    for (HeaderTensor& tensor : tensors) {
      const auto [place, is_new] = file_of_.emplace(tensor.name, number);
      if (!is_new)
        return absl::InvalidArgumentError(
            fmt::format("tensor {} is in '{}' and in '{}'", Quote(tensor.name), paths_[place->second], path));
      tensors_.push_back({std::move(tensor.name), std::move(tensor.shape), tensor.dtype,
                          static_cast<uint64_t>(tensor.num_elements), false});
      places_.emplace_back(number, data + tensor.begin);
    }
    return absl::OkStatus();
  }

  absl::Status AddIndex(const std::string& path) {
    FT_ASSIGN_OR_RETURN(const std::string text, ReadText(path, "index", kMaxSafetensorsHeaderBytes));
    FT_ASSIGN_OR_RETURN(const auto weight_map, ParseSafetensorsIndex(text, path));
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    std::map<std::string, size_t> numbers;
    for (const auto& [tensor, name] : weight_map) {
      const auto [place, is_new] = numbers.emplace(name, paths_.size());
      if (is_new) FT_RETURN_IF_ERROR(AddFile(folder + name));
      const auto found = file_of_.find(tensor);
      if (found == file_of_.end() || found->second != place->second)
        return absl::InvalidArgumentError(fmt::format("'{}' says that tensor {} is in {}, but it is not",
                                                      path, Quote(tensor), Quote(name)));
    }
    return absl::OkStatus();
  }

  std::vector<std::string> paths_;
  std::map<std::string, size_t> file_of_;            // by name of a tensor
  std::vector<std::pair<size_t, uint64_t>> places_;  // file and offset, by tensor
  OpenFile open_{-1};
  size_t open_number_ = SIZE_MAX;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorSide>> OpenPlainTensors(const std::string& path) {
  auto tensors = std::make_unique<PlainTensors>();
  FT_RETURN_IF_ERROR(tensors->Open(path));
  return tensors;
}

}  // namespace ft::ckpt
