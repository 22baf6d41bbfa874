#include "runtime/data/tensor_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "runtime/base/exit_status.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/checkpoint/safetensors_head.h"
#include "runtime/data/batch_sampler.h"
#include "runtime/data/data_identity.h"
#include "runtime/data/data_text.h"
#include "runtime/data/dataset.h"
#include "runtime/data/evaluation_batches.h"
#include "runtime/data/testing/input.h"
#include "runtime/data/testing/raw.h"

namespace ft {
namespace {

struct Stored {
  TensorSpec spec;
  std::string bytes;
};

// A batch of 2 of every type, and a constant.
DataInputs Inputs() {
  DataInputs made;
  made.inputs = {
      InputOf("pixels", proto::F32, {2, 3}), InputOf("halves", proto::BF16, {2}),
      InputOf("labels", proto::I32, {2}),    InputOf("wide", proto::I64, {2, 2}),
      InputOf("seen", proto::U8, {2, 2}),    InputOf("table", proto::F32, {2, 2}, proto::Input::CONSTANT)};
  made.inputs[2].set_ids_below(4);
  made.inputs[2].set_may_be_left_out(true);
  made.inputs[2].set_counted(true);
  return made;
}

class TensorFileTest : public testing::Test {
 protected:
  // `count` examples: every element says which example it is of.
  static std::vector<Stored> Good(int64_t count, int first = 0) {
    std::vector<float> pixels;
    std::vector<uint16_t> halves;
    std::vector<int32_t> labels;
    std::vector<int64_t> wide;
    std::vector<uint8_t> seen;
    for (int k = first; k < first + count; ++k) {
      for (int i = 0; i < 3; ++i) pixels.push_back(static_cast<float>(10 * k + i));
      halves.push_back(static_cast<uint16_t>(k));
      labels.push_back(k % 4);
      for (int i = 0; i < 2; ++i) wide.push_back((int64_t{1} << 40) + k);
      for (int i = 0; i < 2; ++i) seen.push_back(static_cast<uint8_t>((k + i) % 2));
    }
    // One byte first: nothing after it is aligned.
    return {{{"seen", SafetensorsDType::kBool, {count, 2}}, Raw(seen)},
            {{"halves", SafetensorsDType::kBF16, {count}}, Raw(halves)},
            {{"pixels", SafetensorsDType::kF32, {count, 3}}, Raw(pixels)},
            {{"labels", SafetensorsDType::kI32, {count}}, Raw(labels)},
            {{"wide", SafetensorsDType::kI64, {count, 2}}, Raw(wide)},
            {{"table", SafetensorsDType::kF32, {2, 2}}, Raw(std::vector<float>{1, 2, 3, 4})}};
  }

  std::string Write(const std::vector<Stored>& tensors, const std::string& name = "d.safetensors") const {
    std::vector<TensorSpec> specs;
    std::string data;
    for (const Stored& tensor : tensors) {
      specs.push_back(tensor.spec);
      data += tensor.bytes;
    }
    return folder_.Write(name, SafetensorsHead(specs) + data);
  }

  void ExpectRefused(const std::vector<Stored>& tensors, const std::string& words) const {
    const DataInputs inputs = Inputs();
    const auto file = OpenTensorFile(Write(tensors), inputs);
    EXPECT_EQ(ExitStatus(file.status()), kExitBadInput) << file.status();
    const std::string message(file.status().message());
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_NE(message.find("d.safetensors"), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }

  TempFolder folder_;
};

// A batch of 2, as a step sees it.
struct Batch {
  float pixels[6];
  uint16_t halves[2];
  int32_t labels[2];
  int64_t wide[4];
  uint8_t seen[4];
  float table[4];
  std::vector<void*> places() { return {pixels, halves, labels, wide, seen, table}; }
};

TEST_F(TensorFileTest, ReadsEveryTypeByName) {
  const auto data = *OpenDataset({{.path = Write(Good(5))}}, Inputs());
  EXPECT_EQ(data->num_sequences(), 5);
  EXPECT_EQ(data->files()[0]->format(), DataFormat::kSafetensors);
  EXPECT_NE(DataText(*data).find("d.safetensors (safetensors, 5 examples)"), std::string::npos);
  Batch batch = {};
  BatchSampler(*data, 2, 1, 2, 0, false).Fill(0, batch.places());  // examples 2 and 3
  EXPECT_EQ(batch.pixels[0], 20);
  EXPECT_EQ(batch.pixels[5], 32);
  EXPECT_EQ(batch.halves[1], 3);
  EXPECT_EQ(batch.labels[0], 2);
  EXPECT_EQ(batch.wide[3], (int64_t{1} << 40) + 3);
  EXPECT_EQ(batch.seen[2], 1);
  EXPECT_EQ(batch.seen[3], 0);
  EXPECT_EQ(batch.table[3], 4);
}

TEST_F(TensorFileTest, ValuesOfThePlanAreInNoFile) {
  DataInputs inputs = Inputs();
  inputs.inputs[5].set_filling(proto::Input::VALUE);
  inputs.inputs[5].set_value(std::string(16, '\0'));
  std::vector<Stored> tensors = Good(5);
  const auto refused = OpenTensorFile(Write(tensors), inputs);
  EXPECT_NE(std::string(refused.status().message()).find("no input of the model takes tensor 'table'"),
            std::string::npos)
      << refused.status();
  tensors.pop_back();
  const auto data = *OpenDataset({{.path = Write(tensors)}}, inputs);
  Batch batch = {};
  batch.table[0] = batch.table[3] = 1;
  BatchSampler(*data, 2, 1, 2, 0, false).Fill(0, batch.places());
  EXPECT_EQ(batch.wide[3], (int64_t{1} << 40) + 3);
  EXPECT_EQ(batch.table[0] + batch.table[3], 0);
}

TEST_F(TensorFileTest, FilesFollowEachOtherAndShareConstants) {
  std::vector<Stored> second = Good(3, 5);
  const std::string a = Write(Good(5), "a.safetensors"), b = Write(second, "b.safetensors");
  const auto data = *OpenDataset({{.path = a}, {.path = b}}, Inputs());
  EXPECT_EQ(data->num_sequences(), 8);
  Batch batch = {};
  BatchSampler(*data, 2, 0, 1, 0, false).Fill(2, batch.places());  // 4 and 5
  EXPECT_EQ(batch.halves[0], 4);
  EXPECT_EQ(batch.halves[1], 5);
  second.back().bytes[0] ^= 1;
  const auto other = OpenDataset({{.path = a}, {.path = Write(second, "c.safetensors")}}, Inputs());
  EXPECT_EQ(ExitStatus(other.status()), kExitBadInput);
  EXPECT_NE(std::string(other.status().message()).find("'table' is a constant"), std::string::npos);
}

TEST_F(TensorFileTest, EvaluationFillsUpOrLeavesOut) {
  const auto data = *OpenDataset({{.path = Write(Good(5))}}, Inputs());
  const EvaluationBatches fills(*data, 2, 0, 1, 0), leaves(*data, 2, 0, 1, 0, false);
  EXPECT_EQ(fills.num_batches(), 3);
  EXPECT_EQ(leaves.num_batches(), 2);
  Batch batch = {};
  fills.Fill(2, batch.places());
  EXPECT_EQ(batch.labels[0], 0);
  EXPECT_EQ(batch.labels[1], -1);
  EXPECT_EQ(batch.pixels[3], 0);
  EXPECT_EQ(batch.table[1], 2);
}

TEST_F(TensorFileTest, IsKnownByNameOrHeader) {
  const std::string path = Write(Good(5), "other.bin");
  EXPECT_TRUE(*IsTensorFile(path));
  EXPECT_FALSE(*IsTensorFile(folder_.Write("text.bin", "some text that is no header")));
  EXPECT_EQ((*OpenDataset({{.path = path}}, Inputs()))->num_sequences(), 5);
  EXPECT_EQ(ExitStatus(IsTensorFile(folder_.Path("none")).status()), kExitIo);
}

TEST_F(TensorFileTest, IdentityRemembersExamples) {
  const auto data = *OpenDataset({{.path = Write(Good(5))}}, Inputs());
  const DataIdentity identity = IdentityOf(*data);
  const auto read = ParseDataIdentity(DataIdentityText(identity));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(DataChange(identity, *read), "");
  EXPECT_EQ(read->sources[0].files[0].num_examples, 5);
  EXPECT_EQ(IdentityHash(identity), IdentityHash(*read));
  const auto longer = *OpenDataset({{.path = Write(Good(6))}}, Inputs());
  EXPECT_NE(DataChange(identity, IdentityOf(*longer)), "");
}

TEST_F(TensorFileTest, TokensFillNoPixels) {
  const auto data = OpenDataset({{.path = folder_.Write("a.txt", "some text")}}, Inputs());
  EXPECT_EQ(ExitStatus(data.status()), kExitBadInput);
  EXPECT_NE(std::string(data.status().message()).find("cannot fill the model's input 'pixels' (f32 [3])"),
            std::string::npos)
      << data.status();
}

TEST_F(TensorFileTest, PositionsGoAlongWithTokens) {
  DataInputs inputs = TokenInputs(256, 3);
  inputs.inputs.push_back(InputOf("positions", proto::I32, {1, 3}, proto::Input::POSITIONS));
  const auto data = *OpenDataset({{.path = folder_.Write("a.txt", "abcdefg")}}, inputs);
  int32_t tokens[3], targets[3], positions[3];
  data->Read(1, {tokens, targets, positions});
  EXPECT_EQ(tokens[0], 'd');
  EXPECT_EQ(targets[2], 'g');
  EXPECT_EQ(positions[2], 2);
  inputs.inputs.push_back(InputOf("segments", proto::I32, {1, 3}, proto::Input::SEGMENTS));
  EXPECT_EQ(ExitStatus(OpenDataset({{.path = folder_.Path("a.txt")}}, inputs).status()), kExitBadInput);
}

TEST_F(TensorFileTest, RefusesWhatDoesNotFit) {
  const auto with = [](size_t index, TensorSpec spec, std::string bytes) {
    std::vector<Stored> tensors = Good(5);
    tensors[index] = {std::move(spec), std::move(bytes)};
    return tensors;
  };
  std::vector<Stored> tensors = Good(5);
  tensors.push_back({{"more", SafetensorsDType::kU8, {1}}, "x"});
  ExpectRefused(tensors, "no input of the model takes tensor 'more'; the model's inputs are pixels, halves");
  tensors = Good(5);
  tensors.erase(tensors.begin() + 3);
  ExpectRefused(tensors,
                "it has no tensor 'labels', which the model's input of this name needs: I32 [examples]");
  ExpectRefused(with(3, {"labels", SafetensorsDType::kI64, {5}}, std::string(40, 0)),
                "tensor 'labels' is I64 [5], but the model's input wants I32 [examples]");
  ExpectRefused(with(2, {"pixels", SafetensorsDType::kF32, {5, 4}}, std::string(80, 0)),
                "tensor 'pixels' is F32 [5, 4], but the model's input wants F32 [examples, 3]");
  ExpectRefused(with(3, {"labels", SafetensorsDType::kI32, {}}, std::string(4, 0)), "wants I32 [examples]");
  ExpectRefused(with(5, {"table", SafetensorsDType::kF32, {5, 2, 2}}, std::string(80, 0)),
                "wants F32 [2, 2]");
  ExpectRefused(with(3, {"labels", SafetensorsDType::kI32, {4}}, std::string(16, 0)),
                "tensor 'labels' has 4 examples, those before it have 5");
  ExpectRefused(with(3, {"labels", SafetensorsDType::kI32, {5}}, Raw(std::vector<int32_t>{0, 1, -1, 4, 0})),
                "tensor 'labels': element 3, of example 3, has the value 4, outside of 0 ... 3 (or negative");
  ExpectRefused(with(0, {"seen", SafetensorsDType::kBool, {5, 2}}, std::string(10, 2)),
                "tensor 'seen': element 0, of example 0, has the value 2, outside of 0 ... 1");
  ExpectRefused(Good(0), "it has no examples");
}

}  // namespace
}  // namespace ft
