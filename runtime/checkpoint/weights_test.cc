#include "runtime/checkpoint/weights.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/base/exit_status.h"
#include "runtime/base/temp_folder.h"
#include "runtime/checkpoint/safetensors_writer.h"

namespace ft {
namespace {

struct Stored {
  std::string name;
  std::vector<int64_t> shape;
  char fill;
  SafetensorsDType dtype = SafetensorsDType::kF32;
};

class WeightsTest : public testing::Test {
 protected:
  const SafetensorsReader& Store(const std::vector<Stored>& tensors) {
    std::vector<TensorSpec> specs;
    std::string data;
    for (const Stored& tensor : tensors) {
      specs.push_back({tensor.name, tensor.dtype, tensor.shape});
      size_t bytes = SizeOf(tensor.dtype);
      for (int64_t dim : tensor.shape) bytes *= dim;
      data.append(bytes, tensor.fill);
    }
    auto writer = SafetensorsWriter::Create(path_, specs);
    EXPECT_TRUE((*writer)->Append(data.data(), data.size()).ok());
    EXPECT_TRUE((*writer)->Commit().ok());
    reader_ = *SafetensorsReader::Open(path_);
    return *reader_;
  }
  std::string Error(const std::vector<Stored>& tensors, const std::vector<WantedTensor>& wanted) {
    const absl::Status status = MatchWeights(Store(tensors), wanted).status();
    EXPECT_EQ(ExitStatus(status), kExitBadInput) << status;
    return std::string(status.message());
  }

  TempFolder folder_;
  std::string path_ = folder_.Path("m.safetensors");
  std::string quoted_ = "'" + path_ + "'";
  std::unique_ptr<SafetensorsReader> reader_;
};

TEST_F(WeightsTest, AliasesOfHuggingFace) {
  EXPECT_EQ(HuggingFaceAliases("transformer.wte.weight"), std::vector<std::string>{"wte.weight"});
  EXPECT_EQ(HuggingFaceAliases("model.layers.0.x"), std::vector<std::string>{"layers.0.x"});
  EXPECT_TRUE(HuggingFaceAliases("lm_head.weight").empty());
  EXPECT_TRUE(HuggingFaceAliases("model.").empty());
}

TEST_F(WeightsTest, FindsNamesAndAliases) {
  const SafetensorsReader& reader =
      Store({{"wte.weight", {2, 3}, 1}, {"transformer.b", {4}, 2}, {"h.attn.bias", {1}, 3}});
  const std::vector<WantedTensor> wanted = {{"transformer.b", {4}, {"b"}},
                                            {"transformer.wte.weight", {2, 3}, {"wte.weight"}}};
  auto match = MatchWeights(reader, wanted);
  ASSERT_TRUE(match.ok()) << match.status();
  ASSERT_EQ(match->entries.size(), 2u);
  EXPECT_EQ(match->entries[0], reader.Find("transformer.b"));
  EXPECT_EQ(match->entries[1], reader.Find("wte.weight"));
  EXPECT_EQ(match->unused, std::vector<std::string>{"h.attn.bias"});
  EXPECT_EQ(match->note, "1 tensor of " + quoted_ + " not used by the model: h.attn.bias");
}

TEST_F(WeightsTest, NoteIsShort) {
  const SafetensorsReader& reader = Store({{"a", {1}, 0},
                                           {"b", {1}, 0},
                                           {"c", {1}, 0},
                                           {"d", {1}, 0},
                                           {"e", {1}, 0},
                                           {"f", {1}, 0},
                                           {"w", {1}, 0}});
  const std::vector<WantedTensor> wanted = {{"w", {1}, {}}};
  auto match = MatchWeights(reader, wanted);
  EXPECT_EQ(match->note, "6 tensors of " + quoted_ + " not used by the model: a, b, c, d, e, ...");
  EXPECT_EQ(match->unused.size(), 6u);
  EXPECT_EQ(MatchWeights(Store({{"w", {1}, 0}}), wanted)->note, "");
}

TEST_F(WeightsTest, TiedHeadMustBeEqual) {
  const std::vector<WantedTensor> wanted = {
      {"transformer.wte.weight", {2, 3}, {"wte.weight", "lm_head.weight"}}};
  auto match =
      MatchWeights(Store({{"lm_head.weight", {2, 3}, 1}, {"transformer.wte.weight", {2, 3}, 1}}), wanted);
  ASSERT_TRUE(match.ok()) << match.status();
  EXPECT_EQ(match->entries[0]->name, "transformer.wte.weight");
  EXPECT_TRUE(match->unused.empty());
  EXPECT_EQ(
      Error({{"lm_head.weight", {2, 3}, 1}, {"transformer.wte.weight", {2, 3}, 2}}, wanted),
      quoted_ + ": tensors 'transformer.wte.weight' and 'lm_head.weight' are one in the model but differ");
  EXPECT_EQ(Error({{"wte.weight", {2, 3}, 1}, {"transformer.wte.weight", {2, 3}, 2}}, wanted),
            quoted_ + ": tensors 'transformer.wte.weight' and 'wte.weight' are one in the model but differ");
  EXPECT_EQ(
      Error({{"lm_head.weight", {2, 3}, 1, SafetensorsDType::kBF16}, {"transformer.wte.weight", {2, 3}, 1}},
            wanted),
      quoted_ + ": tensors 'transformer.wte.weight' and 'lm_head.weight' are one in the model but differ");
}

TEST_F(WeightsTest, NamesTheFirstFaultAndCountsTheOthers) {
  EXPECT_EQ(Error({{"a", {2, 3}, 0}}, {{"a", {3, 2}, {}}}),
            quoted_ + ": tensor 'a' has the shape [2, 3], the model's has [3, 2]");
  EXPECT_EQ(Error({{"a", {1}, 0}}, {{"a", {1}, {}}, {"model.b", {1}, {"b"}}}),
            quoted_ + " has no tensor 'model.b' (nor 'b')");
  EXPECT_EQ(Error({{"a", {1}, 0, SafetensorsDType::kI32}}, {{"a", {1}, {}}, {"c", {1}, {}}}),
            quoted_ +
                ": tensor 'a' is of dtype I32; F32, F16, BF16 and F64 can be used (and 1 more tensor does "
                "not fit)");
  EXPECT_EQ(Error({{"a", {1}, 0}}, {{"x", {1}, {}}, {"y", {1}, {}}, {"a", {2}, {}}}),
            quoted_ + " has no tensor 'x' (and 2 more tensors do not fit)");
}

}  // namespace
}  // namespace ft
