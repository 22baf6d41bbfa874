// The indices of weights in several files against what the heads of the files say.
#include "runtime/checkpoint/state/tensor_index.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/checkpoint/state/testing/made_state.h"

namespace ft {
namespace {

using nlohmann::json;

constexpr size_t kLengthBytes = 8;

// Tensor -> file, and the bytes of all tensors, of the files of a kind.
struct Heads {
  std::map<std::string, std::string> files;
  uint64_t bytes = 0;
};

Heads HeadsOf(const FileLayout& layout, const std::string& kind) {
  Heads heads;
  for (int f = 0; f < layout.num_files(); ++f) {
    const LayoutFile file = layout.File(f);
    if (!file.name.starts_with(kind)) continue;
    const json head = json::parse(file.head.substr(kLengthBytes));
    for (const auto& [name, entry] : head.items()) {
      if (name == "__metadata__") continue;
      EXPECT_TRUE(heads.files.emplace(name, file.name).second) << name;
      heads.bytes += entry["data_offsets"][1].get<uint64_t>() - entry["data_offsets"][0].get<uint64_t>();
    }
  }
  return heads;
}

TEST(TensorIndexTest, NamesTheFileOfEachTensor) {
  const StateLayout state = made::MadeState({1, 2}, /*sliced=*/true);
  const FileLayout layout = FileLayout::Create(state, CheckpointType::kFull, /*max_file_bytes=*/700).value();
  const auto indices = TensorIndices(layout);
  ASSERT_EQ(indices.size(), 2u);
  for (const std::string kind : {"model", "optimizer"}) {
    const auto& [name, text] = indices[kind == "model" ? 0 : 1];
    EXPECT_EQ(name, kind + ".safetensors.index.json");
    const json index = json::parse(text);
    const Heads heads = HeadsOf(layout, kind);
    EXPECT_GT(heads.files.size(), 6u);
    EXPECT_EQ((index["weight_map"].get<std::map<std::string, std::string>>()), heads.files);
    EXPECT_EQ(index["metadata"]["total_size"].get<uint64_t>(), heads.bytes);
  }
}

TEST(TensorIndexTest, OneFileHasNone) {
  const StateLayout state = made::MadeState({1, 2}, /*sliced=*/true);
  EXPECT_TRUE(TensorIndices(FileLayout::Create(state, CheckpointType::kFull).value()).empty());
  for (const CheckpointType type : {CheckpointType::kSharded, CheckpointType::kLocal})
    EXPECT_TRUE(TensorIndices(FileLayout::Create(state, type, 700).value()).empty());
}

}  // namespace
}  // namespace ft
