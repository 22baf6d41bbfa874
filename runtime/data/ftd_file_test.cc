#include "runtime/data/ftd_file.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/exit_status.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/data/testing/ftd_bytes.h"

namespace ft {
namespace {

using Tensors = std::vector<FtdTensor>;
using Metadata = std::map<std::string, std::string>;

FtdTensor& Named(Tensors& tensors, const std::string& name) {
  for (FtdTensor& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  ADD_FAILURE() << name;
  return tensors[0];
}

// All that a file can hold: three documents, a mask, labels and a vocabulary of 5.
struct Whole {
  Tensors tensors;
  Metadata metadata;

  Whole() {
    FtdParts parts{.documents = {{0, 1, 2}, {3}, {4, 0, 1, 2, 3, 4, 0}},
                   .vocabulary_size = 5,
                   .kind = "sequences",
                   .mask = {0, 1, 1, 1, 0, 1, 0, 1, 1, 1, 0},
                   .inputs = {{"input.labels", "I32", {3}, Raw(std::vector<int32_t>{7, -1, 9})}},
                   .more = {{"eos_token", "4"}, {"pad_token", "0"}, {"tokenizer_hash", "0123456789abcdef"}}};
    tensors = parts.Tensors();
    metadata = parts.Metadata();
    const Tensors words = VocabularyTensors({"a", "", "\xc3", "b b", "</s>"}, {0, 0, 0, 0, 1});
    tensors.insert(tensors.begin() + 2, words[0]);  // the wide ones stand first
    tensors.insert(tensors.end(), {words[1], words[2]});
  }
  std::string Bytes() const { return FtdBytes(tensors, metadata); }
};

class FtdFileTest : public testing::Test {
 protected:
  absl::StatusOr<FtdFile> Open(const std::string& bytes) const {
    return FtdFile::Open(folder_.Write("d.ftd", bytes));
  }

  void ExpectRefused(const std::string& bytes, const std::string& words) const {
    const auto file = Open(bytes);
    EXPECT_EQ(ExitStatus(file.status()), kExitBadInput) << words << ": " << file.status();
    const std::string message(file.status().message());
    EXPECT_NE(message.find(words), std::string::npos) << words << ": " << message;
    EXPECT_NE(message.find("d.ftd"), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }

  TempFolder folder_;
};

TEST_F(FtdFileTest, GivesEverythingThatItHolds) {
  const auto file = Open(Whole().Bytes());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->kind(), FtdKind::kSequences);
  EXPECT_EQ(file->vocabulary_size(), 5);
  EXPECT_EQ(file->tokenizer_hash(), "0123456789abcdef");
  EXPECT_EQ(file->bos_token(), std::nullopt);
  EXPECT_EQ(file->eos_token(), 4);
  EXPECT_EQ(file->pad_token(), 0);
  EXPECT_EQ(file->documents(), absl::MakeConstSpan(std::vector<uint64_t>{0, 3, 4, 11}));
  EXPECT_EQ(file->num_documents(), 3);
  EXPECT_EQ(file->num_tokens(), 11);
  EXPECT_EQ(file->token_bytes(), 2);
  EXPECT_EQ(file->Token(4), 4);
  EXPECT_EQ(file->Token(9), 4);
  EXPECT_FALSE(file->Counts(0));
  EXPECT_TRUE(file->Counts(9));
  EXPECT_FALSE(file->Counts(10));
  EXPECT_EQ(file->num_counted(), 7);
  ASSERT_EQ(file->inputs().size(), 1u);
  EXPECT_EQ(file->inputs()[0].name, "labels");
  EXPECT_EQ(file->inputs()[0].dtype, SafetensorsDType::kI32);
  EXPECT_EQ(file->inputs()[0].bytes.size(), 12u);
  ASSERT_TRUE(file->vocabulary().has_value());
  EXPECT_EQ(file->vocabulary()->size(), 5);
  EXPECT_EQ(file->vocabulary()->Bytes(1), "");
  EXPECT_EQ(file->vocabulary()->Bytes(3), "b b");
  EXPECT_TRUE(file->vocabulary()->IsSpecial(4));
  EXPECT_FALSE(file->vocabulary()->IsSpecial(3));
  EXPECT_EQ(file->content_hash(), HashOf(Whole().Bytes()));
}

TEST_F(FtdFileTest, IsReadWithoutWhatMayBeAbsent) {
  const auto file = Open(FtdParts{.documents = {{70000, 5}}, .vocabulary_size = 70001}.Bytes());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->token_bytes(), 4);
  EXPECT_EQ(file->Token(0), 70000);
  EXPECT_TRUE(file->Counts(1));
  EXPECT_EQ(file->num_counted(), 2);
  EXPECT_EQ(file->tokenizer_hash(), "");
  EXPECT_FALSE(file->vocabulary().has_value());
}

TEST_F(FtdFileTest, EveryTokenOfALargeVocabularyMayBe16Bits) {
  const auto file = Open(FtdParts{.documents = {{65535, 0}}, .vocabulary_size = 65536}.Bytes());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->token_bytes(), 2);
  EXPECT_EQ(file->Token(0), 65535);
}

TEST_F(FtdFileTest, IsKnownByItsNameOrItsHeader) {
  const std::string other = folder_.Write("other.safetensors", FtdBytes({}, {{"format", "pt"}}));
  EXPECT_FALSE(*IsFtdFile(other));
  EXPECT_FALSE(*IsFtdFile(folder_.Write("text", "some text that is no file of tensors")));
  EXPECT_TRUE(*IsFtdFile(folder_.Write("unnamed", Whole().Bytes())));
  EXPECT_TRUE(*IsFtdFile(folder_.Write("cut.ftd", "")));
  EXPECT_EQ(ExitStatus(IsFtdFile(folder_.Path("none")).status()), kExitIo);
  EXPECT_EQ(ExitStatus(FtdFile::Open(other).status()), kExitBadInput);
}

TEST_F(FtdFileTest, EveryCutIsSeen) {
  const std::string whole = Whole().Bytes();
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(ExitStatus(Open(whole.substr(0, size)).status()), kExitBadInput) << size;
  EXPECT_EQ(ExitStatus(Open(whole + '\0').status()), kExitBadInput);
}

TEST_F(FtdFileTest, EveryFlippedBitIsSeen) {
  const std::string whole = Whole().Bytes();
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
    EXPECT_EQ(ExitStatus(Open(flipped).status()), kExitBadInput) << at;
  }
}

// Hashes are right, what is hashed is not.
TEST_F(FtdFileTest, RefusesTensorsThatLie) {
  const auto refused = [&](const std::string& words, const std::function<void(Tensors&)>& change) {
    Whole whole;
    change(whole.tensors);
    ExpectRefused(whole.Bytes(), words);
  };
  const auto documents = [&](std::vector<uint64_t> begins, const std::string& words) {
    refused(words, [&](Tensors& tensors) {
      FtdTensor& tensor = Named(tensors, "documents");
      tensor.shape[0] = static_cast<int64_t>(begins.size());
      tensor.bytes = Raw(begins);
    });
  };
  documents({1, 3, 4, 11}, "its first document begins at token 1, not 0");
  documents({0, 3, 3, 11}, "document 1 begins at token 3 and ends at token 3");
  documents({0, 4, 3, 11}, "document 1 begins at token 4 and ends at token 3");
  documents({0, 3, 4, 12}, "its last document ends at token 12, but there are 11");
  documents({0, 3, 4, 10}, "its last document ends at token 10, but there are 11");
  documents({0}, "it has no documents");
  documents({0, 11}, "tensor 'input.labels' has the shape [3], but there are 1 documents");
  refused("token 9 has the value 5, outside of its vocabulary of 5",
          [](Tensors& tensors) { Named(tensors, "tokens").bytes[18] = 5; });
  refused("loss_mask has bits behind the last token",
          [](Tensors& tensors) { Named(tensors, "loss_mask").bytes[1] |= 8; });
  refused("8 of its tokens count as targets, but its header says 7",
          [](Tensors& tensors) { Named(tensors, "loss_mask").bytes[0] |= 1; });
  refused("tensor 'loss_mask' is U8 [3] instead of U8 [2]", [](Tensors& tensors) {
    Named(tensors, "loss_mask").shape[0] = 3;
    Named(tensors, "loss_mask").bytes += '\0';
  });
  refused("vocabulary.offsets fall from 4 to 2 at token 2", [](Tensors& tensors) {
    Named(tensors, "vocabulary.offsets").bytes = Raw(std::vector<uint32_t>{0, 1, 4, 2, 5, 9});
  });
  refused("vocabulary.offsets begin with 1, not 0",
          [](Tensors& tensors) { Named(tensors, "vocabulary.offsets").bytes[0] = 1; });
  refused("vocabulary.offsets end at 8, but vocabulary.bytes has 9",
          [](Tensors& tensors) { Named(tensors, "vocabulary.offsets").bytes[20] = 8; });
  refused("vocabulary.special of token 4 is 2, neither 0 nor 1",
          [](Tensors& tensors) { Named(tensors, "vocabulary.special").bytes[4] = 2; });
  refused("it has no tensor 'vocabulary.special'", [](Tensors& tensors) { tensors.pop_back(); });
  refused("it has no tensor 'documents'", [](Tensors& tensors) { tensors.erase(tensors.begin()); });
  refused("tensor 'tokens' is I16 [11] instead of U16 [n]",
          [](Tensors& tensors) { Named(tensors, "tokens").dtype = "I16"; });
  refused("tensor 'extra' is none of the format's",
          [](Tensors& tensors) { tensors.push_back({"extra", "U8", {1}, "a"}); });
  refused("no input of a model can be called 'a-b'",
          [](Tensors& tensors) { tensors.push_back({"input.a-b", "U8", {3}, "abc"}); });
  refused("tensor 'input.late' is I32, but begins at byte",
          [](Tensors& tensors) { tensors.push_back({"input.late", "I32", {3}, std::string(12, 'a')}); });
}

TEST_F(FtdFileTest, RefusesHeadersThatLie) {
  const auto refused = [&](const std::string& key, const std::string& value, const std::string& words) {
    Whole whole;
    whole.metadata[key] = value;
    ExpectRefused(whole.Bytes(), words);
  };
  const auto missing = [&](const std::string& key, const std::string& words) {
    Whole whole;
    whole.metadata.erase(key);
    ExpectRefused(whole.Bytes(), words);
  };
  refused("version", "2", "'version' of its header is '2'; this program reads version 1");
  refused("kind", "poems", "'kind' of its header is 'poems'");
  refused("vocabulary_size", "4", "'eos_token' of its header is '4', no whole number from 0 to 3");
  refused("vocabulary_size", "0", "'vocabulary_size' of its header is '0'");
  refused("vocabulary_size", "6", "tensor 'vocabulary.offsets' is U32 [6] instead of U32 [7]");
  refused("vocabulary_size", "+5", "'vocabulary_size' of its header is '+5'");
  refused("vocabulary_size", "2147483649", "no whole number from 1 to 2147483648");
  refused("vocabulary_size", "65537", "tensor 'tokens' is U16 [11] instead of U32 [n]");
  refused("counted", "8", "7 of its tokens count as targets, but its header says 8");
  refused("tokenizer_hash", "0123", "'tokenizer_hash' of its header is '0123', no 16 hexadecimal digits");
  refused("tokenizer_hash", "0123456789ABCDEF", "no 16 hexadecimal digits");
  refused("eos_token", "5", "'eos_token' of its header is '5', no whole number from 0 to 4");
  refused("xxh64.tokens", "0123456789abcdef", "but its header says 0123456789abcdef");
  refused("xxh64.gone", "0123456789abcdef", "a hash of tensor 'gone', which it does not hold");
  refused("xxh64.header", "0123456789abcdef", "its header has the hash");
  refused("xxh64.header", "?", "'xxh64.header' of its header is '?'");
  missing("format", "its header has no \"format\":\"ftd\"");
  missing("version", "'version' of its header is missing");
  missing("kind", "'kind' of its header is missing");
  missing("counted", "'counted' of its header is missing");
  missing("tokenizer_hash", "'tokenizer_hash' of its header is missing");
}

TEST_F(FtdFileTest, RefusesWhatIsSaidTwice) {
  Whole whole;
  whole.metadata["a\":\"\",\"kind\":\"text\",\"b"] = "";
  ExpectRefused(whole.Bytes(), "'kind' of its header is said twice");
}

}  // namespace
}  // namespace ft
