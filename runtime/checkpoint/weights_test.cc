#include "runtime/checkpoint/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/testing/temp_folder.h"
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
    const WeightMatch match = MatchWeights(Store(tensors), wanted);
    EXPECT_TRUE(match.note.empty());
    EXPECT_FALSE(match.problems.empty());
    return fmt::format("{}", fmt::join(match.problems, "; "));
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
  const SafetensorsReader& reader = Store({{"wte.weight", {2, 3}, 1}, {"transformer.b", {4}, 2}});
  const std::vector<WantedTensor> wanted = {{"transformer.b", {4}, {"b"}},
                                            {"transformer.wte.weight", {2, 3}, {"wte.weight"}}};
  const WeightMatch match = MatchWeights(reader, wanted);
  EXPECT_TRUE(match.problems.empty());
  ASSERT_EQ(match.entries.size(), 2u);
  using Entries = std::vector<const SafetensorsReader::Entry*>;
  EXPECT_EQ(match.entries[0], Entries{reader.Find("transformer.b")});
  EXPECT_EQ(match.entries[1], Entries{reader.Find("wte.weight")});
  EXPECT_EQ(match.note, "");
}

TEST_F(WeightsTest, FindsParts) {
  const std::vector<WantedTensor> wanted = {{"experts", {2, 4, 3}, {}, "e.{0..1}.{w1,w3}"}};
  const SafetensorsReader& whole = Store({{"experts", {2, 4, 3}, 1}});
  EXPECT_EQ(MatchWeights(whole, wanted).entries[0].size(), 1u);
  std::vector<Stored> parts;
  for (const char* name : {"e.1.w3", "e.0.w1", "e.1.w1", "e.0.w3"}) parts.push_back({name, {2, 3}, 1});
  const SafetensorsReader& in_parts = Store(parts);
  const WeightMatch match = MatchWeights(in_parts, wanted);
  EXPECT_TRUE(match.problems.empty()) << match.problems[0];
  ASSERT_EQ(match.entries[0].size(), 4u);
  EXPECT_EQ(match.entries[0][1], in_parts.Find("e.0.w3"));
  parts.pop_back();
  EXPECT_NE(MatchWeights(Store(parts), wanted).problems[0].find("has no tensor 'e.0.w3'"), std::string::npos);
  parts.push_back({"e.0.w3", {3, 2}, 1});
  EXPECT_NE(MatchWeights(Store(parts), wanted).problems[0].find("has the shape"), std::string::npos);
}

TEST_F(WeightsTest, LeftOverTensorsAreAProblem) {
  const std::vector<WantedTensor> wanted = {{"w", {1}, {}}};
  EXPECT_EQ(
      Error({{"score.weight", {1}, 0}, {"w", {1}, 0}}, wanted),
      "1 tensor of " + quoted_ +
          " has no place in the model: score.weight (--allow-unused=GLOB leaves tensors out on purpose)");
  EXPECT_EQ(Error({{"h.0.q.bias", {1}, 0}, {"h.1.q.bias", {1}, 0}, {"v", {1}, 0}, {"w", {1}, 0}}, wanted),
            "3 tensors of " + quoted_ +
                " have no place in the model: h.*.q.bias (2: 0 to 1), v (--allow-unused=GLOB leaves tensors "
                "out on purpose)");
}

TEST_F(WeightsTest, LeftOverTensorsOnPurpose) {
  const std::vector<WantedTensor> wanted = {{"w", {1}, {}}};
  const SafetensorsReader& reader =
      Store({{"h.0.q.bias", {1}, 0}, {"h.1.q.bias", {1}, 0}, {"v", {1}, 0}, {"w", {1}, 0}});
  const std::vector<std::string> all = {"h.*", "?"}, some = {"h.*.bias"};
  WeightMatch match = MatchWeights(reader, wanted, all);
  EXPECT_TRUE(match.problems.empty());
  EXPECT_EQ(match.note,
            "3 tensors of " + quoted_ + " left out as --allow-unused says: h.*.q.bias (2: 0 to 1), v");
  match = MatchWeights(reader, wanted, some);
  ASSERT_EQ(match.problems.size(), 1u);
  EXPECT_NE(match.problems[0].find("no place in the model: v ("), std::string::npos) << match.problems[0];
}

TEST_F(WeightsTest, BuffersThatTransformersIgnoresAreNotLeftOver) {
  const SafetensorsReader& reader = Store({{"transformer.h.0.attn.bias", {1}, 0},
                                           {"h.11.attn.masked_bias", {1}, 0},
                                           {"model.layers.0.self_attn.rotary_emb.inv_freq", {1}, 0},
                                           {"w", {1}, 0}});
  const std::vector<WantedTensor> wanted = {{"w", {1}, {}}};
  const WeightMatch match = MatchWeights(reader, wanted);
  EXPECT_TRUE(match.problems.empty());
  EXPECT_EQ(match.note, "");
}

TEST_F(WeightsTest, ATensorThatDoesNotFitIsNotLeftOverToo) {
  EXPECT_EQ(Error({{"a", {2, 3}, 0}, {"b", {1}, 0}}, {{"a", {3, 2}, {}}}),
            quoted_ + ": tensor 'a' has the shape [2, 3], the model's has [3, 2]; 1 tensor of " + quoted_ +
                " has no place in the model: b (--allow-unused=GLOB leaves tensors out on purpose)");
}

TEST_F(WeightsTest, TiedHeadMustBeEqual) {
  const std::vector<WantedTensor> wanted = {
      {"transformer.wte.weight", {2, 3}, {"wte.weight", "lm_head.weight"}}};
  const WeightMatch match =
      MatchWeights(Store({{"lm_head.weight", {2, 3}, 1}, {"transformer.wte.weight", {2, 3}, 1}}), wanted);
  EXPECT_TRUE(match.problems.empty());
  EXPECT_EQ(match.entries[0][0]->name, "transformer.wte.weight");
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
