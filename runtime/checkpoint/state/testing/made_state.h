// States for tests: odd sizes, several types, and values that say where they belong.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/completion.h"
#include "runtime/checkpoint/state/folder.h"
#include "runtime/checkpoint/state/share_writer.h"
#include "runtime/checkpoint/state/state_layout.h"

namespace ft::made {

// Three units: one with tensors that end inside of blocks, one of a single element, and one that no optimizer
// knows.
inline StateLayout MadeState(Mesh mesh, bool sliced, uint64_t block = 4, DType weights = DType::kF32) {
  StateLayout layout;
  layout.mesh = mesh;
  layout.block_elements = block;
  const auto add_unit = [&](const std::string& name, const std::vector<std::vector<int64_t>>& shapes) {
    const auto unit = static_cast<uint32_t>(layout.units.size());
    uint64_t at = 0;
    for (size_t i = 0; i < shapes.size(); ++i) {
      uint64_t elements = 1;
      for (const int64_t extent : shapes[i]) elements *= static_cast<uint64_t>(extent);
      layout.parameters.push_back({name + ".w" + std::to_string(i), shapes[i], unit, at, elements});
      at += (elements + block - 1) / block * block;
    }
    layout.units.push_back({name, at});
  };
  add_unit("embed", {{7, 5}, {3}, {}, {2, 2, 11}});
  add_unit("layer", {{1}});
  add_unit("head", {{13, 9}, {130}});
  const auto add_factors = [&](const std::string& role, StateLayoutKind kind) {
    for (const uint32_t u : {0u, 2u}) layout.buffers.push_back({u, role, DType::kF32, false, kind});
  };
  add_factors("col_var", StateLayoutKind::kColumns);
  for (uint32_t u = 0; u < 3; ++u) layout.buffers.push_back({u, "exp_avg", DType::kF32, sliced});
  for (uint32_t u = 0; u < 3; ++u) layout.buffers.push_back({u, "exp_avg_sq", DType::kF32, true});
  add_factors("row_var", StateLayoutKind::kRows);
  add_factors("variance", StateLayoutKind::kVectors);
  for (uint32_t u = 0; u < 3; ++u) layout.buffers.push_back({u, kWeightsRole, weights, sliced});
  return layout;
}

// What element `element` of a role of a unit has for its bits, in every layout.
inline uint32_t ValueOf(const StateLayout& layout, const StateBuffer& buffer, uint64_t element) {
  uint32_t value = 2166136261u;
  for (const char c : buffer.role + layout.units[buffer.unit].name)
    value = (value ^ static_cast<uint8_t>(c)) * 16777619u;
  value ^= static_cast<uint32_t>(element) * 2654435761u;
  return SizeOf(buffer.dtype) == 2 ? value & 0xFFFF : value;
}

inline void FillValues(const StateLayout& layout, const StateBuffer& buffer, ElementRange range,
                       std::byte* out) {
  for (uint64_t e = range.begin; e < range.end; ++e) {
    const uint32_t value = ValueOf(layout, buffer, e);
    std::memcpy(out, &value, SizeOf(buffer.dtype));
    out += SizeOf(buffer.dtype);
  }
}

class MadeSource : public StateSource {
 public:
  explicit MadeSource(const StateLayout& layout) : layout_(layout) {}
  absl::StatusOr<const std::byte*> Get(const Extent& extent, uint64_t offset, uint64_t bytes,
                                       std::byte* scratch) override {
    const StateBuffer& buffer = layout_.buffers[extent.buffer];
    std::vector<std::byte> all(extent.bytes);
    FillValues(layout_, buffer, {extent.element, extent.element + extent.bytes / SizeOf(buffer.dtype)},
               all.data());
    std::memcpy(scratch, all.data() + offset, bytes);
    return scratch;
  }

 private:
  const StateLayout& layout_;
};

// A checkpoint of these values in `folder`, written by all ranks, the last one first. `manifest` says what it
// is of.
inline absl::Status SaveMade(const StateLayout& state, CheckpointType type, const std::string& folder,
                             const proto::Manifest& manifest, const Hosts& hosts = {}) {
  FT_ASSIGN_OR_RETURN(const FileLayout layout, FileLayout::Create(state, type, /*max_file_bytes=*/700));
  FT_RETURN_IF_ERROR(MakeFolders(folder));
  MadeSource source(state);
  WrittenShare all;
  for (int rank = state.world_size() - 1; rank >= 0; --rank) {
    FT_ASSIGN_OR_RETURN(const WrittenShare written, WriteShare(Share(layout, rank, hosts), folder, source));
    FT_ASSIGN_OR_RETURN(WrittenShare told, ParseWrittenShare(Serialize(written)));
    all.Append(std::move(told));
  }
  return CompleteCheckpoint(layout, folder, {}, std::move(all), manifest);
}

}  // namespace ft::made
