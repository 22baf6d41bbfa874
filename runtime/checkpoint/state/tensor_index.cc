#include "runtime/checkpoint/state/tensor_index.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace ft {

std::string TensorIndex(const std::vector<std::pair<std::string, std::string>>& places, uint64_t bytes) {
  nlohmann::ordered_json index;
  index["metadata"]["total_size"] = bytes;
  nlohmann::ordered_json& map = index["weight_map"] = nlohmann::ordered_json::object();
  for (const auto& [tensor, file] : places) map[tensor] = file;
  return index.dump(2) + "\n";
}

std::vector<std::pair<std::string, std::string>> TensorIndices(const FileLayout& layout) {
  std::vector<std::pair<std::string, std::string>> indices;
  if (layout.type() != CheckpointType::kFull) return indices;
  for (const std::string_view kind : {"model", "optimizer"}) {
    std::vector<std::pair<std::string, std::string>> places;
    uint64_t bytes = 0;
    int files = 0;
    for (int f = 0; f < layout.num_files(); ++f) {
      const LayoutFile file = layout.File(f);
      if (!std::string_view(file.name).starts_with(kind)) continue;
      ++files;
      bytes += file.bytes - file.head.size();
      for (const PlacedTensor& placed : file.placed)
        places.emplace_back(layout.tensors()[placed.tensor].name, file.name);
    }
    if (files < 2) continue;
    indices.emplace_back(std::string(kind) + ".safetensors.index.json", TensorIndex(places, bytes));
  }
  return indices;
}

}  // namespace ft
