// CheckpointReader's work on whole files.
#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/checkpoint_reader.h"

namespace ft {
std::string CheckpointReader::WhatIsIn(const LayoutFile& file, uint64_t begin, uint64_t end) const {
  const std::vector<LogicalTensor>& tensors = layout_.tensors();
  const auto end_of = [&](const PlacedTensor& placed) {
    return placed.offset + placed.range.size() * SizeOf(dtype(placed.tensor));
  };
  const auto first =
      std::partition_point(file.placed.begin(), file.placed.end(),
                           [&](const PlacedTensor& placed) { return end_of(placed) <= begin; });
  const auto last = std::partition_point(first, file.placed.end(),
                                         [&](const PlacedTensor& placed) { return placed.offset < end; });
  const auto name = [&](const PlacedTensor& placed) { return Quote(tensors[placed.tensor].name); };
  const std::string_view head = begin < file.head.size() ? "the header or " : "";
  if (first == last) return "the header";
  if (last - first == 1) return fmt::format("{}tensor {}", head, name(*first));
  return fmt::format("{}one of the tensors {} to {}", head, name(*first), name(*(last - 1)));
}

std::vector<std::string> CheckpointReader::FileNames() const {
  std::vector<std::string> names;
  for (int f = 0; f < layout_.num_files(); ++f) names.push_back(layout_.FileName(f));
  for (const auto& [name, listed] : listed_) {
    if (!numbers_.contains(name)) names.push_back(name);
  }
  return names;
}

absl::Status CheckpointReader::CheckSize(const std::string& name) const { return OpenListed(name).status(); }

absl::Status CheckpointReader::VerifyBlocks(OpenedFile& file, What what) {
  const uint64_t count = file.sums.blocks.size();
  for (uint64_t b = 0; b < count; ++b) FT_RETURN_IF_ERROR(BlockInWindow(file, b, count - b, what).status());
  return absl::OkStatus();
}

absl::Status CheckpointReader::VerifyFile(const std::string& name) {
  if (const auto found = numbers_.find(name); found != numbers_.end()) {
    FT_ASSIGN_OR_RETURN(OpenedFile* const file, OpenLayoutFile(static_cast<uint32_t>(found->second)));
    const LayoutFile layout = layout_.File(found->second);
    return VerifyBlocks(*file, [&](uint64_t begin, uint64_t end) { return WhatIsIn(layout, begin, end); });
  }
  FT_ASSIGN_OR_RETURN(OpenedFile file, OpenListed(name));
  const absl::Status status = VerifyBlocks(file, [](uint64_t, uint64_t) { return "the file"; });
  window_file_ = nullptr;  // it is closed
  return status;
}

absl::Status CheckpointReader::VerifyAll() {
  for (const std::string& name : FileNames()) FT_RETURN_IF_ERROR(VerifyFile(name));
  return absl::OkStatus();
}

}  // namespace ft
