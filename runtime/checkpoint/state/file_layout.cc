#include "runtime/checkpoint/state/file_layout.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/safetensors_head.h"

namespace ft {
namespace {

constexpr std::pair<CheckpointType, std::string_view> kTypes[] = {{CheckpointType::kFull, "full"},
                                                                  {CheckpointType::kSharded, "sharded"},
                                                                  {CheckpointType::kLocal, "local"}};

// "model-00002-of-00003.safetensors", as Hugging Face numbers them; "model.safetensors" where there is one.
std::string NumberedName(std::string_view stem, size_t number, size_t count) {
  if (count == 1) return fmt::format("{}.safetensors", stem);
  return fmt::format("{}-{:05}-of-{:05}.safetensors", stem, number + 1, count);
}

}  // namespace

SafetensorsDType DTypeInFile(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return SafetensorsDType::kBF16;
    case DType::kF16:
      return SafetensorsDType::kF16;
    case DType::kF64:
      return SafetensorsDType::kF64;
    case DType::kI32:
      return SafetensorsDType::kI32;
    case DType::kI64:
      return SafetensorsDType::kI64;
    case DType::kU8:
      return SafetensorsDType::kU8;
    case DType::kF32:
      break;
  }
  return SafetensorsDType::kF32;
}

std::string TensorName(std::string_view role, const std::string& parameter) {
  return role == kWeightsRole ? parameter : fmt::format("{}/{}", role, parameter);
}

std::string_view Name(CheckpointType type) {
  for (const auto& [value, name] : kTypes) {
    if (value == type) return name;
  }
  return "";
}

absl::StatusOr<CheckpointType> ParseCheckpointType(std::string_view word) {
  for (const auto& [value, name] : kTypes) {
    if (name == word) return value;
  }
  return absl::InvalidArgumentError(
      fmt::format("'{}' is no type of checkpoint; there are full, sharded and local", word));
}

absl::StatusOr<FileLayout> FileLayout::Create(StateLayout state, CheckpointType type,
                                              uint64_t max_file_bytes) {
  FileLayout layout(std::move(state), type, max_file_bytes);
  layout.ListTensors();
  FT_RETURN_IF_ERROR(layout.CheckNames());
  for (uint32_t t = 0; t < layout.tensors_.size(); ++t) layout.by_name_.emplace(layout.tensors_[t].name, t);
  if (type == CheckpointType::kFull) layout.FillFullFiles();
  return layout;
}

void FileLayout::ListTensors() {
  for (uint32_t b = 0; b < state_.buffers.size(); ++b) {
    const StateBuffer& buffer = state_.buffers[b];
    const size_t before = tensors_.size();
    if (type_ == CheckpointType::kLocal) {
      const uint64_t elements = state_.Elements(buffer);
      tensors_.push_back({buffer.role + "/" + state_.units[buffer.unit].name,
                          {static_cast<int64_t>(elements)},
                          b,
                          {0, elements}});
    } else {
      state_.ForEachTensor(buffer, [&](const StateParameter& parameter, ElementRange range) {
        tensors_.push_back(
            {TensorName(buffer.role, parameter.name), *StateShape(buffer.kind, parameter.shape), b, range});
      });
    }
    of_buffer_.emplace_back(before, tensors_.size());
  }
}

absl::Status FileLayout::CheckNames() const {
  std::vector<std::string_view> names;
  for (const LogicalTensor& tensor : tensors_) {
    FT_RETURN_IF_ERROR(CheckTensorName(tensor.name));
    names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("two tensors of a checkpoint would be '{}'", *twice));
}

int FileLayout::FindTensor(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? -1 : static_cast<int>(found->second);
}

uint64_t FileLayout::ElementBytes(uint32_t tensor) const {
  return SizeOf(state_.buffers[tensors_[tensor].buffer].dtype);
}

void FileLayout::AddHead(LayoutFile& file) const {
  std::vector<TensorSpec> specs;
  for (const PlacedTensor& placed : file.placed) {
    const LogicalTensor& tensor = tensors_[placed.tensor];
    // Of a part, the range as one dimension: what it is a part of stands in the manifest.
    const bool whole = placed.range == tensor.range && type_ == CheckpointType::kFull;
    specs.push_back({tensor.name, DTypeInFile(state_.buffers[tensor.buffer].dtype),
                     whole ? tensor.shape : std::vector<int64_t>{static_cast<int64_t>(placed.range.size())}});
  }
  file.head = SafetensorsHead(specs);
  uint64_t at = file.head.size();
  for (PlacedTensor& placed : file.placed) {
    placed.offset = at;
    at += placed.range.size() * ElementBytes(placed.tensor);
  }
  file.bytes = at;
}

void FileLayout::FillFullFiles() {
  full_place_.resize(tensors_.size());
  for (const bool weights : {true, false}) {
    const size_t first_file = full_.size();
    uint64_t bytes = 0;
    for (uint32_t t = 0; t < tensors_.size(); ++t) {
      if ((state_.buffers[tensors_[t].buffer].role == kWeightsRole) != weights) continue;
      const uint64_t own = tensors_[t].range.size() * ElementBytes(t);
      if (full_.size() == first_file || bytes + own > max_file_bytes_) {
        full_.emplace_back();
        bytes = 0;
      }
      full_.back().placed.push_back({t, tensors_[t].range, 0});
      bytes += own;
    }
    const size_t count = full_.size() - first_file;
    for (size_t i = 0; i < count; ++i)
      full_[first_file + i].name = NumberedName(weights ? "model" : "optimizer", i, count);
  }
  for (uint32_t f = 0; f < full_.size(); ++f) {
    AddHead(full_[f]);
    for (const PlacedTensor& placed : full_[f].placed) full_place_[placed.tensor] = {f, placed.offset};
  }
}

int FileLayout::num_files() const {
  return type_ == CheckpointType::kFull ? static_cast<int>(full_.size()) : state_.world_size();
}

std::string FileLayout::FileName(int file) const {
  if (type_ == CheckpointType::kFull) return full_[static_cast<size_t>(file)].name;
  return fmt::format("rank-{:05}-of-{:05}.safetensors", file, state_.world_size());
}

LayoutFile FileLayout::File(int file) const {
  return type_ == CheckpointType::kFull ? full_[static_cast<size_t>(file)] : RankFile(file);
}

std::vector<PlacedTensor> FileLayout::PartsOf(int rank) const {
  std::vector<PlacedTensor> parts;
  for (uint32_t b = 0; b < state_.buffers.size(); ++b) {
    const ElementRange saved = state_.SavedBy(state_.buffers[b], rank);
    const auto first = tensors_.begin() + static_cast<ptrdiff_t>(of_buffer_[b].first);
    const auto last = tensors_.begin() + static_cast<ptrdiff_t>(of_buffer_[b].second);
    auto tensor =
        std::partition_point(first, last, [&](const LogicalTensor& t) { return t.range.end <= saved.begin; });
    for (; tensor != last && tensor->range.begin < saved.end; ++tensor) {
      const ElementRange part = Intersect(tensor->range, saved);
      if (!part.empty()) parts.push_back({static_cast<uint32_t>(tensor - tensors_.begin()), part, 0});
    }
  }
  return parts;
}

LayoutFile FileLayout::RankFile(int rank) const {
  LayoutFile file;
  file.name = FileName(rank);
  file.placed = PartsOf(rank);
  AddHead(file);
  return file;
}

std::vector<Extent> FileLayout::WrittenBy(int rank) const {
  std::vector<Extent> extents;
  const auto add = [&](uint32_t file, uint64_t offset, const PlacedTensor& part) {
    extents.push_back({file, offset, part.range.size() * ElementBytes(part.tensor),
                       tensors_[part.tensor].buffer, part.range.begin});
  };
  if (type_ != CheckpointType::kFull) {
    for (const PlacedTensor& part : RankFile(rank).placed)
      add(static_cast<uint32_t>(rank), part.offset, part);
  } else {
    for (const PlacedTensor& part : PartsOf(rank)) {
      const auto [file, offset] = full_place_[part.tensor];
      const uint64_t into =
          (part.range.begin - tensors_[part.tensor].range.begin) * ElementBytes(part.tensor);
      add(file, offset + into, part);
    }
    std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
      return std::pair(a.file, a.offset) < std::pair(b.file, b.offset);
    });
  }
  return Joined(extents);
}

std::vector<Extent> FileLayout::Joined(const std::vector<Extent>& extents) const {
  std::vector<Extent> joined;
  for (const Extent& extent : extents) {
    if (!joined.empty()) {
      Extent& last = joined.back();
      const uint64_t size = SizeOf(state_.buffers[last.buffer].dtype);
      if (extent.file == last.file && extent.offset == last.offset + last.bytes &&
          extent.buffer == last.buffer && extent.element == last.element + last.bytes / size) {
        last.bytes += extent.bytes;
        continue;
      }
    }
    joined.push_back(extent);
  }
  return joined;
}

std::vector<Extent> FileLayout::Find(uint32_t tensor, ElementRange range) {
  const LogicalTensor& whole = tensors_[tensor];
  const StateBuffer& buffer = state_.buffers[whole.buffer];
  const uint64_t size = SizeOf(buffer.dtype);
  if (type_ == CheckpointType::kFull) {
    const auto [file, offset] = full_place_[tensor];
    return {{file, offset + (range.begin - whole.range.begin) * size, range.size() * size, whole.buffer,
             range.begin}};
  }
  std::vector<Extent> extents;
  while (!range.empty()) {
    const int rank = state_.SaverOf(buffer, range.begin);
    const auto [places, is_new] = rank_places_.try_emplace(rank);
    if (is_new) {
      for (const PlacedTensor& placed : RankFile(rank).placed) places->second.emplace(placed.tensor, placed);
    }
    const PlacedTensor& placed = places->second.at(tensor);
    const ElementRange here = Intersect(placed.range, range);
    extents.push_back({static_cast<uint32_t>(rank), placed.offset + (here.begin - placed.range.begin) * size,
                       here.size() * size, whole.buffer, here.begin});
    range.begin = here.end;
  }
  return extents;
}

}  // namespace ft
