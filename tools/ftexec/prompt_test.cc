#include "tools/ftexec/prompt.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/data/testing/ftd_bytes.h"

namespace ft {
namespace {

using testing::HasSubstr;

proto::Plan PlanOf(uint64_t vocabulary) {
  proto::Plan plan;
  plan.set_vocab_size(vocabulary);
  return plan;
}

class PromptTest : public testing::Test {
 protected:
  std::string Error(const std::string& prompt, uint64_t vocabulary) {
    const absl::Status status = Prompts::Open(prompt, PlanOf(vocabulary)).status();
    return std::string(status.message());
  }

  TempFolder folder_;
};

TEST_F(PromptTest, BytesAreTheTokensOfAModelOfBytes) {
  const Prompts prompts = *Prompts::Open("a\xc3\xa9", PlanOf(256));
  EXPECT_EQ(prompts.all(), (std::vector<std::vector<int32_t>>{{'a', 0xc3, 0xa9}}));
  EXPECT_FALSE(prompts.end().has_value());
  EXPECT_EQ(prompts.TextOf({'a', 0xc3, 0xa9, '\n'}), "a\xc3\xa9\n");
  EXPECT_EQ(prompts.TextOf({0xc3, 'b', 0x1b, '['}),
            "\xef\xbf\xbd"
            "b\xef\xbf\xbd[");
  EXPECT_THAT(Error("", 256), HasSubstr("--prompt is empty"));
  EXPECT_THAT(Error("text", 300), HasSubstr("has a vocabulary of 300: its tokens are no bytes"));
}

TEST_F(PromptTest, DocumentsOfAFileAreThePrompts) {
  FtdParts parts = {.documents = {{0, 3}, {2}}, .vocabulary_size = 4};
  parts.more = {{"eos_token", "3"}};
  std::vector<FtdTensor> tensors = parts.Tensors();  // wide ones first
  const std::vector<FtdTensor> vocabulary = VocabularyTensors({"un", "\xc3", "\xa9!", ""}, {0, 0, 0, 1});
  tensors.insert(tensors.begin() + 1, vocabulary[0]);
  tensors.insert(tensors.end(), vocabulary.begin() + 1, vocabulary.end());
  const std::string path = folder_.Write("p.ftd", FtdBytes(tensors, parts.Metadata()));
  const Prompts prompts = *Prompts::Open(path, PlanOf(8));
  EXPECT_EQ(prompts.all(), (std::vector<std::vector<int32_t>>{{0, 3}, {2}}));
  EXPECT_EQ(prompts.end(), 3);
  // Of two tokens a letter; what is no text is left out; rows behind the vocabulary are none.
  EXPECT_EQ(prompts.TextOf({0, 1, 2, 3, 0}), "un\xc3\xa9!un");
  EXPECT_EQ(prompts.TextOf({0, 1}), "un\xef\xbf\xbd");
  EXPECT_EQ(prompts.TextOf({7}), "\xef\xbf\xbd");
  EXPECT_NE(prompts.Hash(), Prompts::Open("un", PlanOf(256))->Hash());
  EXPECT_THAT(Error(path, 3), HasSubstr("has a vocabulary of 4, more than the model's 3"));
  EXPECT_THAT(Error(folder_.Path("absent.ftd"), 3), HasSubstr("absent.ftd"));
  proto::Plan plan = PlanOf(8);
  plan.set_tokenizer_hash("0123456789abcdef");
  EXPECT_TRUE(Prompts::Open(path, plan).ok());  // the file does not say whose it is
  parts.more["tokenizer_hash"] = "fedcba9876543210";
  const std::string other = folder_.Write("o.ftd", FtdBytes(tensors, parts.Metadata()));
  EXPECT_THAT(
      std::string(Prompts::Open(other, plan).status().message()),
      HasSubstr("by another tokenizer (fedcba9876543210) than the one of the model (0123456789abcdef)"));
}

TEST_F(PromptTest, IdsAreShownWhereNobodyKnowsTheirText) {
  const std::string path = folder_.Write("p.ftd", FtdParts{.documents = {{5, 299}}}.Bytes());
  EXPECT_EQ(Prompts::Open(path, PlanOf(300))->TextOf({5, 299}), "5 299");
}

}  // namespace
}  // namespace ft
