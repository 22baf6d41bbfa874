#include "tools/ftckpt/conversion.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <tuple>

#include "runtime/base/testing/temp_folder.h"
#include "runtime/checkpoint/state/completion.h"
#include "runtime/checkpoint/state/testing/made_state.h"

namespace ft::ckpt {
namespace {

namespace fs = std::filesystem;

void Save(const StateLayout& state, CheckpointType type, const std::string& folder) {
  proto::Manifest manifest;
  manifest.mutable_position()->set_steps(7);
  manifest.mutable_position()->set_sequences((uint64_t{1} << 60) + 1);
  manifest.mutable_health()->add_scaler(1024);
  const absl::Status saved = made::SaveMade(state, type, folder, manifest);
  ASSERT_TRUE(saved.ok()) << saved;
}

// That every tensor has the bits it was made with.
void ExpectMadeValues(const std::string& folder) {
  const auto reader = CheckpointReader::Open(folder);
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_TRUE((*reader)->VerifyAll().ok());
  const FileLayout& layout = (*reader)->layout();
  for (uint32_t t = 0; t < layout.tensors().size(); ++t) {
    const LogicalTensor& tensor = layout.tensors()[t];
    const StateBuffer& buffer = layout.state().buffers[tensor.buffer];
    std::vector<std::byte> got(tensor.range.size() * SizeOf(buffer.dtype)), expected(got.size());
    ASSERT_TRUE((*reader)->Read(t, tensor.range, got.data()).ok());
    made::FillValues(layout.state(), buffer, tensor.range, expected.data());
    EXPECT_EQ(got, expected) << tensor.name;
  }
  EXPECT_EQ((*reader)->manifest().position().sequences(), (uint64_t{1} << 60) + 1);
  EXPECT_EQ((*reader)->manifest().health().scaler(0), 1024);
}

absl::StatusOr<Converted> Convert(const std::string& from, ConversionRequest request) {
  const auto reader = CheckpointReader::Open(from);
  return reader.ok() ? ConvertCheckpoint(request, **reader) : reader.status();
}

class TypesTest : public ::testing::TestWithParam<std::tuple<CheckpointType, CheckpointType, bool>> {};

TEST_P(TypesTest, KeepBits) {
  const auto [from, to, sliced] = GetParam();
  const TempFolder temp;
  Save(made::MadeState({2, 3}, sliced), from, temp.Path("from"));
  ConversionRequest request = {.destination = temp.Path("to"), .type = to};
  if (to == CheckpointType::kSharded) request.ranks = 5;
  const auto converted = Convert(temp.Path("from"), request);
  ASSERT_TRUE(converted.ok()) << converted.status();
  ExpectMadeValues(temp.Path("to"));
  if (to == CheckpointType::kSharded) {
    EXPECT_EQ(converted->files, 5);
  }
  ExpectMadeValues(temp.Path("from"));
}

using enum CheckpointType;
INSTANTIATE_TEST_SUITE_P(All, TypesTest,
                         ::testing::Combine(::testing::Values(kFull, kSharded, kLocal),
                                            ::testing::Values(kFull, kSharded), ::testing::Bool()));
// Made states have values in what pads parameters too, which other types do not keep.
INSTANTIATE_TEST_SUITE_P(Local, TypesTest,
                         ::testing::Combine(::testing::Values(kLocal), ::testing::Values(kLocal),
                                            ::testing::Bool()));

TEST(ConversionTest, ThereAndBackGivesEqualFiles) {
  const TempFolder temp;
  Save(made::MadeState({1, 2}, true), CheckpointType::kFull, temp.Path("a"));
  ASSERT_TRUE(Convert(temp.Path("a"),
                      {.destination = temp.Path("b"), .type = CheckpointType::kSharded, .mesh = Mesh{2, 2}})
                  .ok());
  ASSERT_TRUE(Convert(temp.Path("b"), {.destination = temp.Path("l"), .type = CheckpointType::kLocal}).ok());
  ASSERT_TRUE(Convert(temp.Path("l"), {.destination = temp.Path("c"), .type = CheckpointType::kFull}).ok());
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(temp.Path("a"))) {
    if (entry.path().filename() == kManifestName || entry.path().extension() != ".safetensors") continue;
    ++files;
    EXPECT_EQ(TempFolder::Read(entry.path()),
              TempFolder::Read(temp.Path("c/") + entry.path().filename().string()));
  }
  EXPECT_GT(files, 2u);
}

TEST(ConversionTest, TypesOfWeightsAloneUnlessAsked) {
  const TempFolder temp;
  Save(made::MadeState({1, 2}, true), CheckpointType::kSharded, temp.Path("a"));
  ASSERT_TRUE(Convert(temp.Path("a"), {.destination = temp.Path("b"), .weights = DType::kBF16}).ok());
  const auto reader = CheckpointReader::Open(temp.Path("b")).value();
  ASSERT_TRUE(reader->VerifyAll().ok());
  const auto before = CheckpointReader::Open(temp.Path("a")).value();
  const StateLayout& state = reader->layout().state();
  EXPECT_EQ(state.buffers.back().role, kWeightsRole);  // narrow ones last
  for (const StateBuffer& buffer : state.buffers)
    EXPECT_EQ(buffer.dtype, buffer.role == kWeightsRole ? DType::kBF16 : DType::kF32) << buffer.role;
  const auto t = static_cast<uint32_t>(reader->layout().FindTensor("head.w0"));
  const auto u = static_cast<uint32_t>(before->layout().FindTensor("head.w0"));
  const ElementRange range = reader->layout().tensors()[t].range;
  std::vector<uint16_t> halves(range.size());
  std::vector<float> floats(range.size());
  ASSERT_TRUE(reader->Read(t, range, halves.data()).ok());
  ASSERT_TRUE(before->Read(u, range, floats.data()).ok());
  for (size_t i = 0; i < floats.size(); ++i) {
    uint32_t bits = 0, upper = uint32_t{halves[i]} << 16;
    std::memcpy(&bits, &floats[i], sizeof(bits));
    const uint32_t distance = bits > upper ? bits - upper : upper - bits;
    if ((bits & 0x7F800000) == 0x7F800000) continue;  // no number, or infinite
    EXPECT_LE(distance, 0x8000u) << i;
  }
}

TEST(ConversionTest, HuggingFaceGetsWeightsAndNoManifest) {
  const TempFolder temp;
  Save(made::MadeState({1, 2}, true), CheckpointType::kSharded, temp.Path("a"));
  ASSERT_TRUE(
      Convert(temp.Path("a"), {.destination = temp.Path("hf"), .hugging_face = true, .max_file_bytes = 300})
          .ok());
  EXPECT_TRUE(fs::exists(temp.Path("hf/model.safetensors.index.json")));
  EXPECT_FALSE(fs::exists(temp.Path("hf/manifest.json")));
  for (const auto& entry : fs::directory_iterator(temp.Path("hf")))
    EXPECT_FALSE(entry.path().filename().string().starts_with("optimizer")) << entry;
}

TEST(ConversionTest, RefusesAndLeavesNothing) {
  const TempFolder temp;
  Save(made::MadeState({1, 2}, true), CheckpointType::kSharded, temp.Path("a"));
  const auto code = [&](ConversionRequest request) {
    return Convert(temp.Path("a"), request).status().code();
  };
  EXPECT_EQ(code({.destination = temp.Path("a")}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.destination = temp.Path("a/in")}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.destination = temp.Path("b"), .type = CheckpointType::kLocal, .ranks = 3}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.destination = temp.Path("b"), .type = CheckpointType::kFull, .ranks = 3}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.destination = temp.Path("b"), .ranks = kMostRankFiles + 1}),
            absl::StatusCode::kInvalidArgument);
  // A byte at the end of the last file: all but the last block is written when it is found.
  const std::string file = temp.Path("a/rank-00001-of-00002.safetensors");
  std::string contents = TempFolder::Read(file);
  contents.back() = static_cast<char>(contents.back() ^ 1);
  temp.Write("a/rank-00001-of-00002.safetensors", contents);
  EXPECT_EQ(code({.destination = temp.Path("b"), .type = CheckpointType::kFull}),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(temp.NumFiles(), 1u);
}

}  // namespace
}  // namespace ft::ckpt
