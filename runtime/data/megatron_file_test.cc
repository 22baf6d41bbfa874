#include "runtime/data/megatron_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/exit_status.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/data/dataset.h"
#include "runtime/data/testing/raw.h"

namespace ft {
namespace {

// What Megatron-LM's builder writes of these.
struct Set {
  std::vector<int32_t> sizes = {3, 1, 4, 2};
  std::vector<int64_t> places = {0, 6, 8, 16};
  std::vector<int64_t> documents = {0, 2, 2, 4};  // the second one is empty
  uint64_t version = 1;
  uint8_t type = 8;
  std::string magic = std::string("MMIDIDX\0\0", 9);
  std::string tokens = Raw(std::vector<uint16_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});

  std::string Index() const {
    return magic + Raw(std::vector<uint64_t>{version}) + static_cast<char>(type) +
           Raw(std::vector<uint64_t>{sizes.size(), documents.size()}) + Raw(sizes) + Raw(places) +
           Raw(documents);
  }
};

class MegatronFileTest : public testing::Test {
 protected:
  absl::StatusOr<MegatronFile> Open(const std::string& index, const std::string& tokens,
                                    int64_t vocabulary = 50257) const {
    folder_.Write("a.idx", index);
    return MegatronFile::Open(folder_.Write("a.bin", tokens), vocabulary);
  }

  void ExpectRefused(const Set& set, const std::string& words, int64_t vocabulary = 50257) const {
    const auto file = Open(set.Index(), set.tokens, vocabulary);
    EXPECT_EQ(ExitStatus(file.status()), kExitBadInput) << words;
    EXPECT_NE(std::string(file.status().message()).find(words), std::string::npos) << words << file.status();
  }

  TempFolder folder_;
};

TEST_F(MegatronFileTest, GivesTokensAndDocuments) {
  const auto file = Open(Set().Index(), Set().tokens);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->row().count, 10);
  EXPECT_EQ(file->row().Token(9), 10);
  EXPECT_EQ(file->row().documents, absl::MakeConstSpan(std::vector<uint64_t>{0, 4, 10}));
  EXPECT_EQ(file->path(), folder_.Path("a.bin"));
  EXPECT_TRUE(MegatronFile::Open(folder_.Path("a.idx"), 50257).ok());
}

TEST_F(MegatronFileTest, ReadsIntegersOfThreeKinds) {
  Set set;
  set.type = 4;
  set.tokens = Raw(std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 100000});
  set.places = {0, 12, 16, 32};
  EXPECT_EQ(Open(set.Index(), set.tokens, 100001)->row().Token(9), 100000);
  set.type = 1;
  set.tokens = "abcdefghij";
  set.places = {0, 3, 4, 8};
  EXPECT_EQ(Open(set.Index(), set.tokens, 256)->row().Token(9), 'j');
}

TEST_F(MegatronFileTest, EveryCutIsSeen) {
  const std::string index = Set().Index(), tokens = Set().tokens;
  for (size_t size = 0; size < index.size(); ++size)
    EXPECT_EQ(ExitStatus(Open(index.substr(0, size), tokens).status()), kExitBadInput) << size;
  for (size_t size = 0; size < tokens.size(); ++size)
    EXPECT_EQ(ExitStatus(Open(index, tokens.substr(0, size)).status()), kExitBadInput) << size;
  EXPECT_EQ(ExitStatus(Open(index + "a", tokens).status()), kExitBadInput);
}

TEST_F(MegatronFileTest, RefusesWhatContradictsItself) {
  const auto refused = [&](const std::string& words, auto change, int64_t vocabulary = 50257) {
    Set set;
    change(set);
    ExpectRefused(set, words, vocabulary);
  };
  refused("does not begin with MMIDIDX", [](Set& set) { set.magic[3] = 'x'; });
  refused("is of version 2; only version 1", [](Set& set) { set.version = 2; });
  refused("is of integers of type 5", [](Set& set) { set.type = 5; });
  refused("is of integers of type 3", [](Set& set) { set.type = 3; });
  refused("sequence 1 begins at byte 7, but those before it end at 6", [](Set& set) { set.places[1] = 7; });
  refused("sequence 1 has -1 tokens", [](Set& set) { set.sizes[1] = -1; });
  refused("describes 22 bytes of tokens, but the .bin beside it has 20", [](Set& set) { set.sizes[3] = 3; });
  refused("documents from sequence 1 to 4", [](Set& set) { set.documents[0] = 1; });
  refused("documents from sequence 0 to 3, but there are 4", [](Set& set) { set.documents[3] = 3; });
  refused("document 1 begins at sequence 3 and ends at 2", [](Set& set) { set.documents = {0, 3, 2, 4}; });
  refused("says that there are 0 sequences", [](Set& set) { set.sizes = {}, set.places = {}; });
  refused("token 9 has the value 10, outside the model's vocabulary of 10", [](Set&) {}, 10);
}

TEST_F(MegatronFileTest, AFolderOfBothFilesIsReadOnce) {
  std::filesystem::create_directory(folder_.Path("d"));
  folder_.Write("d/a.idx", Set().Index());
  folder_.Write("d/a.bin", Set().tokens);
  folder_.Write("d/b.bin", Set().tokens);
  const auto data = OpenDataset(folder_.Path("d"), 50257, 4);
  ASSERT_TRUE(data.ok()) << data.status();
  ASSERT_EQ((*data)->files().size(), 2u);
  EXPECT_EQ((*data)->files()[0]->format(), DataFormat::kMegatron);
  EXPECT_EQ((*data)->files()[1]->format(), DataFormat::kU16);
  EXPECT_EQ((*data)->num_sequences(), 4);
  const auto twice =
      OpenDataset({{.path = folder_.Path("d/a.idx")}, {.path = folder_.Path("d/a.bin")}}, 50257, 4);
  EXPECT_NE(std::string(twice.status().message()).find("is named twice"), std::string::npos)
      << twice.status();
}

}  // namespace
}  // namespace ft
