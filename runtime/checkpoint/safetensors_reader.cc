#include "runtime/checkpoint/safetensors_reader.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "runtime/base/load_element.h"
#include "runtime/base/round_float.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/safetensors_header.h"
#include "runtime/checkpoint/safetensors_index.h"

namespace ft {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian and read in place");

constexpr std::string_view kModelFile = "model.safetensors";
constexpr std::string_view kModelIndex = "model.safetensors.index.json";

std::string_view AsText(absl::Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Where `path` leads: itself, or the model or index inside the folder that it is.
absl::StatusOr<std::string> ResolveFolder(const std::string& path) {
  std::error_code ignored;  // what cannot be examined is reported when it is opened
  if (!std::filesystem::is_directory(path, ignored)) return path;
  for (std::string_view name : {kModelFile, kModelIndex}) {
    const std::string inside = fmt::format("{}/{}", path, name);
    if (std::filesystem::exists(inside, ignored)) return inside;
  }
  return absl::NotFoundError(fmt::format("folder '{}' has neither {} nor {}", path, kModelFile, kModelIndex));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SafetensorsReader>> SafetensorsReader::Open(const std::string& path) {
  auto reader = absl::WrapUnique(new SafetensorsReader());
  FT_ASSIGN_OR_RETURN(const std::string file, ResolveFolder(path));
  if (file.ends_with(".index.json")) {
    FT_RETURN_IF_ERROR(reader->AddIndex(file));
  } else {
    FT_RETURN_IF_ERROR(reader->AddFile(file));
  }
  return reader;
}

absl::Status SafetensorsReader::AddFile(const std::string& path) {
  FT_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path, MappedFile::Access::kNormal));
  FT_ASSIGN_OR_RETURN(const std::string_view header, SafetensorsHeaderText(file.bytes(), path));
  const absl::Span<const uint8_t> data = file.bytes().subspan(sizeof(uint64_t) + header.size());
  FT_ASSIGN_OR_RETURN(std::vector<HeaderTensor> tensors, ParseSafetensorsHeader(header, data.size(), path));
  const int index = static_cast<int>(files_.size());
  files_.push_back(std::move(file));
  for (HeaderTensor& tensor : tensors) {
    const auto [place, is_new] = by_name_.try_emplace(tensor.name, entries_.size());
    if (!is_new) {
      return absl::InvalidArgumentError(fmt::format("tensor '{}' is in '{}' and in '{}'", tensor.name,
                                                    FileOf(entries_[place->second]), path));
    }
    entries_.push_back({std::move(tensor.name), tensor.dtype, std::move(tensor.shape), tensor.num_elements,
                        data.subspan(tensor.begin, tensor.end - tensor.begin), index});
  }
  return absl::OkStatus();
}

absl::Status SafetensorsReader::AddIndex(const std::string& path) {
  FT_ASSIGN_OR_RETURN(const MappedFile index, MappedFile::Open(path, MappedFile::Access::kSequential));
  if (index.bytes().size() > kMaxSafetensorsHeaderBytes) {
    return absl::InvalidArgumentError(fmt::format("'{}' is too large for an index", path));
  }
  FT_ASSIGN_OR_RETURN(const auto weight_map, ParseSafetensorsIndex(AsText(index.bytes()), path));
  const std::string folder = path.substr(0, path.rfind('/') + 1);  // empty, or with its slash
  absl::flat_hash_map<std::string, int> file_of;
  for (const auto& [tensor, name] : weight_map) {
    const auto [place, is_new] = file_of.try_emplace(name, static_cast<int>(files_.size()));
    if (is_new) FT_RETURN_IF_ERROR(AddFile(folder + name));
    const Entry* entry = Find(tensor);
    if (entry == nullptr || entry->file != place->second) {
      return absl::InvalidArgumentError(
          fmt::format("'{}' says that tensor '{}' is in '{}', but it is not", path, tensor, name));
    }
  }
  return absl::OkStatus();
}

const SafetensorsReader::Entry* SafetensorsReader::Find(std::string_view name) const {
  const auto place = by_name_.find(absl::string_view(name.data(), name.size()));
  return place == by_name_.end() ? nullptr : &entries_[place->second];
}

absl::Status SafetensorsReader::ReadAsF32(const Entry& entry, int64_t first_element, int64_t count,
                                          float* out) const {
  if (first_element < 0 || count < 0 || first_element > entry.num_elements - count) {
    return absl::OutOfRangeError(fmt::format("'{}': elements {} ... {} + {} of tensor '{}', which has {}",
                                             FileOf(entry), first_element, first_element, count, entry.name,
                                             entry.num_elements));
  }
  const uint8_t* data = entry.bytes.data() + first_element * static_cast<int64_t>(SizeOf(entry.dtype));
  switch (entry.dtype) {
    case SafetensorsDType::kF32:
      if (count > 0) std::memcpy(out, data, static_cast<size_t>(count) * sizeof(float));
      return absl::OkStatus();
    case SafetensorsDType::kBF16:
      for (int64_t i = 0; i < count; ++i) out[i] = BF16ToFloat(LoadElement<uint16_t>(data, i));
      return absl::OkStatus();
    case SafetensorsDType::kF16:
      for (int64_t i = 0; i < count; ++i) out[i] = F16ToFloat(LoadElement<uint16_t>(data, i));
      return absl::OkStatus();
    case SafetensorsDType::kF64:
      for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(LoadElement<double>(data, i));
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(
          fmt::format("'{}': tensor '{}' is of dtype {}, which is not read as float", FileOf(entry),
                      entry.name, Name(entry.dtype)));
  }
}

}  // namespace ft
