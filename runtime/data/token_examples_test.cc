#include "runtime/data/token_examples.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/base/exit_status.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/data/data_text.h"
#include "runtime/data/dataset.h"
#include "runtime/data/testing/ftd_bytes.h"
#include "runtime/data/testing/input.h"

namespace ft {
namespace {

using Row = std::vector<int64_t>;
using Input = proto::Input;

constexpr int64_t kT = 6, kVocabulary = 300;

// Inputs of a batch of 1 that tokens fill, i32 or i64.
DataInputs Inputs(const std::vector<Input::Filling>& fillings, proto::DType dtype = proto::I32) {
  DataInputs made;
  made.seq_len = kT;
  made.vocab_size = kVocabulary;
  for (const Input::Filling filling : fillings) {
    std::vector<uint64_t> shape = {1};
    if (filling != Input::LENGTHS) shape.push_back(kT);
    made.inputs.push_back(InputOf(Input::Filling_Name(filling), dtype, shape, filling));
  }
  return made;
}

class TokenExamplesTest : public testing::Test {
 protected:
  std::string Write(const FtdParts& parts) const { return folder_.Write("d.ftd", parts.Bytes()); }

  static std::unique_ptr<Dataset> Open(const std::string& path, const DataInputs& inputs) {
    auto opened = OpenDataset({{.path = path}}, inputs);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *std::move(opened) : nullptr;
  }

  // Of each input what example `index` has; for inputs of integers.
  static std::vector<Row> Read(const Dataset& data, int64_t index) {
    std::vector<Row> rows;
    std::vector<std::vector<uint8_t>> memory;
    std::vector<void*> places;
    for (const proto::Input& input : data.inputs()) memory.emplace_back(ExampleBytes(input), 0xee);
    for (auto& each : memory) places.push_back(each.data());
    data.Read(index, places);
    for (size_t i = 0; i < memory.size(); ++i) {
      const size_t size = SizeOf(static_cast<DType>(data.inputs()[i].dtype()));
      Row& row = rows.emplace_back();
      for (size_t at = 0; at < memory[i].size(); at += size) {
        int64_t value = 0;
        std::memcpy(&value, memory[i].data() + at, size);
        row.push_back(size == 4 ? static_cast<int32_t>(value) : value);
      }
    }
    return rows;
  }

  void ExpectRefused(const FtdParts& parts, const DataInputs& inputs, const std::string& words) const {
    const auto data = OpenDataset({{.path = Write(parts)}}, inputs);
    EXPECT_EQ(ExitStatus(data.status()), kExitBadInput) << words;
    const std::string message(data.status().message());
    EXPECT_NE(message.find(words), std::string::npos) << words << ": " << message;
    EXPECT_NE(message.find("d.ftd"), std::string::npos) << message;
  }

  TempFolder folder_;
};

// Documents of 4, 1, 9, 2 and 3 tokens; token i has the value i but for the first, which are 100 and more.
FtdParts Five() {
  FtdParts parts{
      .documents = {{100, 1, 2, 3}, {104}, {105, 6, 7, 8, 9, 10, 11, 12, 13}, {114, 15}, {116, 17, 18}}};
  parts.more = {{"pad_token", "299"}};
  return parts;
}

TEST_F(TokenExamplesTest, StreamsGoOnOverDocuments) {
  FtdParts parts = Five();
  parts.mask.assign(19, 1);
  parts.mask[2] = parts.mask[6] = 0;
  const auto data = Open(Write(parts), Inputs({Input::TOKENS, Input::TARGETS, Input::POSITIONS}));
  EXPECT_EQ(data->num_sequences(), 3);
  EXPECT_EQ(Read(*data, 0),
            (std::vector<Row>{{100, 1, 2, 3, 104, 105}, {1, -100, 3, 104, 105, -100}, {0, 1, 2, 3, 4, 5}}));
  EXPECT_EQ(Read(*data, 2)[1], (Row{13, 114, 15, 116, 17, 18}));
}

TEST_F(TokenExamplesTest, LabelsAreTheTokensThemselves) {
  FtdParts parts = Five();
  parts.documents.pop_back();
  parts.documents.push_back({116, 17});  // 18 tokens are 3 sequences of 6
  parts.mask.assign(18, 1);
  parts.mask[1] = parts.mask[17] = 0;
  const auto data = Open(Write(parts), Inputs({Input::TOKENS, Input::LABELS}, proto::I64));
  EXPECT_EQ(data->num_sequences(), 3);
  EXPECT_EQ(Read(*data, 0), (std::vector<Row>{{100, 1, 2, 3, 104, 105}, {100, -100, 2, 3, 104, 105}}));
  EXPECT_EQ(Read(*data, 2), (std::vector<Row>{{12, 13, 114, 15, 116, 17}, {12, 13, 114, 15, 116, -100}}));
}

TEST_F(TokenExamplesTest, PlainTokensFillTheSame) {
  const std::string path =
      folder_.Write("a.u16", Raw(std::vector<uint16_t>{9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2}));
  const auto data =
      Open(path, Inputs({Input::TOKENS, Input::LABELS, Input::ATTENTION_MASK, Input::LENGTHS}, proto::I64));
  EXPECT_EQ(data->num_sequences(), 2);
  EXPECT_EQ(Read(*data, 1),
            (std::vector<Row>{{3, 2, 1, 0, 1, 2}, {3, 2, 1, 0, 1, 2}, {1, 1, 1, 1, 1, 1}, {6}}));
  const auto encoder = Open(path, Inputs({Input::TOKENS, Input::TOKEN_TYPES}));
  EXPECT_EQ(Read(*encoder, 0)[1], (Row{0, 0, 0, 0, 0, 0}));
  const auto both = Open(path, Inputs({Input::LABELS, Input::TARGETS, Input::TOKENS}));
  EXPECT_EQ(both->num_sequences(), 1);
  EXPECT_EQ(Read(*both, 0), (std::vector<Row>{{9, 8, 7, 6, 5, 4}, {8, 7, 6, 5, 4, 3}, {9, 8, 7, 6, 5, 4}}));
}

// With targets the documents take 3, 0, 8, 1 and 2 places: 8 are a whole sequence and 2 more.
TEST_F(TokenExamplesTest, DocumentsArePacked) {
  const auto data = Open(Write(Five()), Inputs({Input::TOKENS, Input::TARGETS, Input::SEGMENTS,
                                                Input::POSITIONS, Input::ATTENTION_MASK, Input::LENGTHS}));
  ASSERT_EQ(data->num_sequences(), 3);
  EXPECT_EQ(Read(*data, 0), (std::vector<Row>{{105, 6, 7, 8, 9, 10},
                                              {6, 7, 8, 9, 10, 11},
                                              {0, 0, 0, 0, 0, 0},
                                              {0, 1, 2, 3, 4, 5},
                                              {1, 1, 1, 1, 1, 1},
                                              {6}}));
  // 3 + 2 + 1: best fit decreasing puts all of one pack there, and the last two in another.
  EXPECT_EQ(Read(*data, 1), (std::vector<Row>{{100, 1, 2, 11, 12, 114},
                                              {1, 2, 3, 12, 13, 15},
                                              {0, 0, 0, 1, 1, 2},
                                              {0, 1, 2, 0, 1, 0},
                                              {1, 1, 1, 1, 1, 1},
                                              {6}}));
  EXPECT_EQ(Read(*data, 2), (std::vector<Row>{{116, 17, 299, 299, 299, 299},
                                              {17, 18, -100, -100, -100, -100},
                                              {0, 0, 1, 1, 1, 1},
                                              {0, 1, 0, 1, 2, 3},
                                              {1, 1, 0, 0, 0, 0},
                                              {2}}));
  EXPECT_NE(DataText(*data).find("(ftd, 19 tokens, 3 sequences of 5 packed documents, 77.8% filled)"),
            std::string::npos)
      << DataText(*data);
}

// No token is asked for what another document begins with.
TEST_F(TokenExamplesTest, PackedLabelsLeaveOutFirstTokens) {
  FtdParts parts{.documents = {{1, 2, 3}, {4, 5}, {6}}};
  parts.mask = {1, 1, 0, 1, 1, 1};
  const auto data = Open(Write(parts), Inputs({Input::TOKENS, Input::LABELS, Input::SEGMENTS}));
  ASSERT_EQ(data->num_sequences(), 1);
  EXPECT_EQ(Read(*data, 0),
            (std::vector<Row>{{1, 2, 3, 4, 5, 6}, {-100, 2, -100, -100, 5, -100}, {0, 0, 0, 1, 1, 2}}));
}

TEST_F(TokenExamplesTest, DocumentsAreExamplesWithPaddingBehind) {
  FtdParts parts = Five();
  parts.documents[2].resize(7);
  parts.documents[1].push_back(5);
  parts.mask.assign(18, 1);
  parts.mask[1] = 0;
  const auto data = Open(Write(parts), Inputs({Input::TOKENS, Input::TARGETS, Input::LENGTHS}));
  ASSERT_EQ(data->num_sequences(), 5);
  EXPECT_EQ(Read(*data, 0),
            (std::vector<Row>{{100, 1, 2, 299, 299, 299}, {-100, 2, 3, -100, -100, -100}, {3}}));
  EXPECT_EQ(Read(*data, 2), (std::vector<Row>{{105, 6, 7, 8, 9, 10}, {6, 7, 8, 9, 10, 11}, {6}}));
  const auto masked =
      Open(Write(Five().documents.size() == 5 ? FtdParts{.documents = {{7, 8}, {9}}} : Five()),
           Inputs({Input::TOKENS, Input::LABELS, Input::ATTENTION_MASK}, proto::I64));
  EXPECT_EQ(Read(*masked, 1),
            (std::vector<Row>{{9, 0, 0, 0, 0, 0}, {9, -100, -100, -100, -100, -100}, {1, 0, 0, 0, 0, 0}}));
}

TEST_F(TokenExamplesTest, ClassesComeWithTheirDocuments) {
  FtdParts parts{.documents = {{1, 2, 3}, {4}, {5, 6}}, .kind = "sequences"};
  parts.inputs = {{"input.labels", "I32", {3}, Raw(std::vector<int32_t>{2, 0, -100})},
                  {"input.token_types", "U8", {3, 6}, std::string(17, '\0') + '\1'}};
  DataInputs inputs = Inputs({Input::TOKENS, Input::SEGMENTS});
  inputs.inputs.push_back(InputOf("labels", proto::I64, {1}, Input::TENSOR));
  inputs.inputs.push_back(InputOf("token_types", proto::I32, {1, kT}, Input::TENSOR));
  inputs.inputs[2].set_ids_below(3);
  inputs.inputs[2].set_may_be_left_out(true);
  const auto data = Open(Write(parts), inputs);
  ASSERT_EQ(data->num_sequences(), 3);
  EXPECT_EQ(Read(*data, 0),
            (std::vector<Row>{{1, 2, 3, 0, 0, 0}, {0, 0, 0, 1, 1, 1}, {2}, {0, 0, 0, 0, 0, 0}}));
  EXPECT_EQ(Read(*data, 2),
            (std::vector<Row>{{5, 6, 0, 0, 0, 0}, {0, 0, 1, 1, 1, 1}, {-100}, {0, 0, 0, 0, 0, 1}}));
  inputs.inputs[2].set_ids_below(2);
  ExpectRefused(parts, inputs,
                "tensor 'input.labels' has for example 0 the value 2, outside of 0 ... 1 (or negative");
  inputs.inputs[2].set_ids_below(3);
  inputs.inputs[2].set_may_be_left_out(false);
  ExpectRefused(parts, inputs, "has for example 2 the value -100, outside of 0 ... 2");
  inputs.inputs[2].set_name("classes");
  ExpectRefused(parts, inputs, "no input of the model takes tensor 'input.labels'");
  parts.inputs.erase(parts.inputs.begin());
  ExpectRefused(parts, inputs,
                "has no tensor 'input.classes', which the model's input 'classes' needs: i64 []");
  inputs.inputs.erase(inputs.inputs.begin() + 2);
  inputs.inputs[2].set_shape(1, 5);
  ExpectRefused(parts, inputs,
                "tensor 'input.token_types' is U8 [3, 6], but the model's input wants i32 [5]");
}

TEST_F(TokenExamplesTest, RefusesWhatTheModelCannotTake) {
  const DataInputs stream = Inputs({Input::TOKENS, Input::TARGETS});
  ExpectRefused({.documents = {{1, 2, 3, 4, 5, 6}}}, stream,
                "is too short: it holds 6 tokens, and one sequence of length 6 needs 7");
  ExpectRefused({.documents = {{1, 2}}, .vocabulary_size = 301}, stream,
                "has a vocabulary of 301, more than the model's 300");
  DataInputs other = stream;
  other.tokenizer_hash = "0123456789abcdef";
  FtdParts made{.documents = {{1, 2, 3, 4, 5, 6, 7}}};
  made.more = {{"tokenizer_hash", "0123456789abcdee"}};
  ExpectRefused(
      made, other,
      "was made by another tokenizer (0123456789abcdee) than the one of the model (0123456789abcdef)");
  made.more = {{"tokenizer_hash", "0123456789abcdef"}};
  EXPECT_NE(Open(Write(made), other), nullptr);
  // Its own tokenizer may know more than it has rows for, as long as the tokens do not say so.
  made.vocabulary_size = 301;
  EXPECT_NE(Open(Write(made), other), nullptr);
  made.documents[0][3] = 300;
  ExpectRefused(made, other, "token 3 is 300, which the model has no row for: it has 300");
  made.documents[0][3] = 4;
  made.more["pad_token"] = "300";
  ExpectRefused(made, other, "is padded with token 300, which the model has no row for: it has 300");
  const DataInputs padded = Inputs({Input::TOKENS, Input::TARGETS, Input::LENGTHS});
  ExpectRefused({.documents = {{1, 2}, {1, 2, 3, 4, 5, 6, 7, 8}}}, padded,
                "has in document 1 8 tokens, of which one example of the model takes 7");
  ExpectRefused({.documents = {{1, 2}, {1}}}, padded,
                "has in document 1 one token, which nothing is to predict");
  ExpectRefused({.documents = {{1}, {1}}}, Inputs({Input::TOKENS, Input::TARGETS, Input::SEGMENTS}),
                "has no document of two tokens or more");
  DataInputs pixels = stream;
  pixels.inputs.push_back(InputOf("pixels", proto::F32, {1, 3}, Input::TENSOR));
  ExpectRefused({.documents = {{1, 2, 3, 4, 5, 6, 7}}}, pixels,
                "cannot fill the model's input 'pixels' (f32 [3])");
  FtdParts rows{.documents = {{1, 2, 3, 4, 5, 6, 7}}};
  rows.inputs = {{"input.pixels", "F32", {1, 3}, std::string(12, '\0')}};
  ExpectRefused(rows, pixels,
                "has a tensor 'input.pixels' with a row for each document, but documents are parts of one");
  DataInputs learned = Inputs({Input::TOKENS, Input::TARGETS, Input::POSITIONS});
  learned.inputs[2].set_ids_below(5);
  ExpectRefused({.documents = {{1, 2, 3, 4, 5, 6, 7}}}, learned,
                "the model has 5 positions, fewer than the 6 tokens");
  const auto plain = OpenDataset({{.path = folder_.Write("a.u16", Raw(std::vector<uint16_t>(9)))}},
                                 Inputs({Input::TOKENS, Input::TARGETS, Input::SEGMENTS}));
  EXPECT_EQ(ExitStatus(plain.status()), kExitBadInput);
  EXPECT_NE(std::string(plain.status().message()).find("a.u16' does not say where documents begin"),
            std::string::npos)
      << plain.status();
}

}  // namespace
}  // namespace ft
