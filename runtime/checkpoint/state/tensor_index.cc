#include "runtime/checkpoint/state/tensor_index.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace ft {

std::vector<std::pair<std::string, std::string>> TensorIndices(const FileLayout& layout) {
  std::vector<std::pair<std::string, std::string>> indices;
  if (layout.type() != CheckpointType::kFull) return indices;
  for (const std::string_view kind : {"model", "optimizer"}) {
    nlohmann::ordered_json map = nlohmann::ordered_json::object();
    uint64_t bytes = 0;
    int files = 0;
    for (int f = 0; f < layout.num_files(); ++f) {
      const LayoutFile file = layout.File(f);
      if (!std::string_view(file.name).starts_with(kind)) continue;
      ++files;
      bytes += file.bytes - file.head.size();
      for (const PlacedTensor& placed : file.placed) map[layout.tensors()[placed.tensor].name] = file.name;
    }
    if (files < 2) continue;
    nlohmann::ordered_json index;
    index["metadata"]["total_size"] = bytes;
    index["weight_map"] = std::move(map);
    indices.emplace_back(std::string(kind) + ".safetensors.index.json", index.dump(2) + "\n");
  }
  return indices;
}

}  // namespace ft
