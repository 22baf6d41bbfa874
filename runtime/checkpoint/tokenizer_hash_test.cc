#include "runtime/checkpoint/tokenizer_hash.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/base/exit_status.h"
#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

class TokenizerHashTest : public testing::Test {
 protected:
  absl::StatusOr<TokenizerFacts> Read(const std::string& text) const {
    return ReadTokenizer(folder_.Write("tokenizer.json", text));
  }
  void ExpectRefused(const std::string& text, const std::string& words) const {
    const absl::Status status = Read(text).status();
    EXPECT_EQ(ExitStatus(status), kExitBadInput) << text;
    EXPECT_NE(std::string(status.message()).find(words), std::string::npos) << status;
    EXPECT_EQ(std::string(status.message()).find('\n'), std::string::npos) << status;
  }

  TempFolder folder_;
};

// The hash is that of Python's xxhash.xxh64 over struct.pack("<II", id, length) + text.
TEST_F(TokenizerHashTest, IsOfIdsAndStrings) {
  const auto facts = Read(R"({"model":{"type":"BPE","vocab":{"b":1,"a":0,"\u0120c":3}},
                              "added_tokens":[{"id":7,"content":"<s>"},{"id":1,"content":"B"}]})");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->vocabulary_size, 8);
  EXPECT_EQ(facts->hash, "8b61fd00b6d11b32");
  // The same tokens as pieces with scores, but for the hole.
  const auto pieces = Read(R"({"model":{"vocab":[["a",0.0],["B",-1.5],["x",0],["\u0120c",1]]},
                               "added_tokens":[{"id":7,"content":"<s>"}]})");
  EXPECT_EQ(pieces->vocabulary_size, 8);
  EXPECT_NE(pieces->hash, facts->hash);
  EXPECT_EQ(Read(R"({"model":{"vocab":{"a":0}}})")->vocabulary_size, 1);
}

TEST_F(TokenizerHashTest, RefusesWhatIsNone) {
  ExpectRefused("", "it is no JSON");
  ExpectRefused("[1", "it is no JSON");
  ExpectRefused("[]", "model.vocab is neither");
  ExpectRefused(R"({"model":{}})", "model.vocab is neither");
  ExpectRefused(R"({"model":{"vocab":{}}})", "it has no tokens");
  ExpectRefused(R"({"model":{"vocab":{"a":-1}}})", "gives 'a' the id '-1'");
  ExpectRefused(R"({"model":{"vocab":{"a":1.5}}})", "gives 'a' the id '1.5'");
  ExpectRefused(R"({"model":{"vocab":{"a":2147483648}}})", "gives 'a' the id '2147483648'");
  ExpectRefused(R"({"model":{"vocab":{"a":18446744073709551615}}})", "gives 'a' the id");
  ExpectRefused(R"({"model":{"vocab":{"a":0,"b":0}}})", "gives id 0 to 'a' and 'b'");
  ExpectRefused(R"({"model":{"vocab":[[1,2]]}})", "piece 0 of model.vocab has no text");
  ExpectRefused(R"({"model":{"vocab":{"a":0}},"added_tokens":[{"id":1}]})", "no id and content");
  ExpectRefused(R"({"model":{"vocab":{"a":0}},"added_tokens":{"a":1}})", "added_tokens are no list");
  EXPECT_EQ(ExitStatus(ReadTokenizer(folder_.Path("none")).status()), kExitIo);
}

}  // namespace
}  // namespace ft
