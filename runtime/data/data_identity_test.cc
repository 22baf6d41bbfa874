#include "runtime/data/data_identity.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/content_hash.h"
#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

class DataIdentityTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_.Path("other"));
    folder_.Write("a", "The first of three files.");
    folder_.Write("b", "The second, with other words.");
    folder_.Write("c", "And here is the last one of them.");
  }

  // Names in the folder of the test, with weights.
  DataIdentity Identity(const std::vector<DataEntry>& names, int64_t seq_len = 4,
                        DataFormat format = DataFormat::kText) const {
    std::vector<DataEntry> entries;
    for (const DataEntry& name : names)
      entries.push_back({.path = folder_.Path(name.path), .weight = name.weight});
    const auto dataset = OpenDataset(entries, 65536, seq_len, format);
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    return IdentityOf(**dataset);
  }

  // That both ways show a change, or none.
  static std::string Change(const DataIdentity& saved, const DataIdentity& now) {
    const std::string change = DataChange(saved, now);
    EXPECT_EQ(change.empty(), IdentityHash(saved) == IdentityHash(now)) << change;
    EXPECT_EQ(change.empty(), DataChange(now, saved).empty());
    EXPECT_EQ(change.find('\n'), std::string::npos);
    return change;
  }

  std::string Quoted(const std::string& name) const { return "'" + folder_.Path(name) + "'"; }

  TempFolder folder_;
};

TEST_F(DataIdentityTest, IsWhatTheFilesAre) {
  const DataIdentity identity = Identity({{"a", 2}, {"b", 3}});
  ASSERT_EQ(identity.sources.size(), 2u);
  EXPECT_EQ(identity.seq_len, 4);
  EXPECT_EQ(identity.sources[1].weight, 3);
  ASSERT_EQ(identity.sources[0].files.size(), 1u);
  const FileIdentity& file = identity.sources[0].files[0];
  EXPECT_EQ(file.path, folder_.Path("a"));
  EXPECT_EQ(file.bytes, 25u);
  EXPECT_EQ(file.num_tokens, 25);
  const std::string text = TempFolder::Read(file.path);
  EXPECT_EQ(file.content_hash, ContentHashOf({reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
}

TEST_F(DataIdentityTest, AnotherFolderIsNoChange) {
  for (const char* name : {"a", "b", "c"})
    std::filesystem::copy(folder_.Path(name), folder_.Path("other/") + name);
  const DataIdentity saved = Identity({{"a"}, {"b"}, {"c"}});
  EXPECT_EQ(Change(saved, saved), "");
  EXPECT_EQ(Change(saved, Identity({{"other"}})), "");
  EXPECT_EQ(Change(saved, Identity({{"[abc]"}})), "");
  std::filesystem::rename(folder_.Path("b"), folder_.Path("b2"));
  EXPECT_EQ(Change(saved, Identity({{"a"}, {"b2"}, {"c"}})), "");
  EXPECT_EQ(Change(Identity({{"a", 0.7}, {"c", 0.3}}), Identity({{"other/a", 7}, {"other/c", 3}})), "");
  EXPECT_EQ(Change(Identity({{"a"}}), Identity({{"a", 5}})), "");
}

TEST_F(DataIdentityTest, ChangesAreNamed) {
  const DataIdentity saved = Identity({{"a"}, {"b"}});
  EXPECT_EQ(Change(saved, Identity({{"a"}})), Quoted("b") + " is missing");
  EXPECT_EQ(Change(saved, Identity({{"b"}})), Quoted("a") + " is missing");
  EXPECT_EQ(Change(saved, Identity({{"a"}, {"b"}, {"c"}})), Quoted("c") + " is new");
  EXPECT_EQ(Change(saved, Identity({{"a"}, {"c"}, {"b"}})), Quoted("c") + " is new, before " + Quoted("b"));
  EXPECT_EQ(Change(saved, Identity({{"b"}, {"a"}})), "the order of the files is another: " + Quoted("a") +
                                                         " was at place 1, where " + Quoted("b") + " is");
  EXPECT_EQ(Change(saved, Identity({{"a"}, {"b"}}, 5)), "sequences have 5 tokens, they had 4");
  EXPECT_EQ(Change(saved, Identity({{"a", 1}, {"b", 1}})), "there are 2 sources of data, there were 1");
  folder_.Write("other/b", "The second, with other wordz.");
  const std::string change = Change(saved, Identity({{"a"}, {"other/b"}}));
  EXPECT_EQ(change.find(Quoted("other/b") + " holds something else than it did, in as many bytes (hash "), 0u)
      << change;
  folder_.Write("other/b", "The second, cut");
  EXPECT_EQ(Change(saved, Identity({{"a"}, {"other/b"}})), Quoted("other/b") + " has 15 bytes, it had 29");
  folder_.Write("a", "all in front is longer: The first of three files.");
  EXPECT_EQ(Change(saved, Identity({{"a"}, {"b"}})), Quoted("a") + " has 49 bytes, it had 25");
}

TEST_F(DataIdentityTest, FormatsAndWidths) {
  folder_.Write("even", "sixteen and more bytes, of 40 altogether");
  const DataIdentity saved = Identity({{"even"}});
  EXPECT_EQ(Change(saved, Identity({{"even"}}, 4, DataFormat::kU16)),
            Quoted("even") + " is read as u16 of 2 bytes a token, it was read as text of 1 byte a token");
}

TEST_F(DataIdentityTest, WeightsAndSources) {
  const DataIdentity saved = Identity({{"a", 0.7}, {"b", 0.3}});
  EXPECT_EQ(Change(saved, Identity({{"a", 0.6}, {"b", 0.4}})),
            "the weights are others: " + Quoted("a") + " has 0.6, it had 0.7");
  EXPECT_EQ(Change(saved, Identity({{"a", 0.7}, {"c", 0.3}})), Quoted("b") + " is missing (source 2)");
  EXPECT_EQ(Change(saved, Identity({{"b", 0.3}, {"a", 0.7}})), Quoted("a") + " is missing (source 1)");
}

TEST_F(DataIdentityTest, ComesBackFromItsText) {
  for (const DataIdentity& identity :
       {Identity({{"a"}, {"b"}}), Identity({{"a", 0.1}, {"b", 1e-5}, {"c", 3}}),
        Identity({{"a"}}, 4, DataFormat::kText)}) {
    const std::string text = DataIdentityText(identity);
    const auto read = ParseDataIdentity(text);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(Change(identity, *read), "");
    EXPECT_EQ(DataIdentityText(*read), text);
  }
  EXPECT_EQ(
      DataIdentityText({.seq_len = 2,
                        .sources = {{.weight = 0.5,
                                     .files = {{.path = "x\xff.u16",
                                                .bytes = 10,
                                                .num_tokens = 5,
                                                .format = DataFormat::kU16,
                                                .token_bytes = 2,
                                                .content_hash = 0x1f}}}}}),
      "{\"seq_len\":2,\"sources\":[{\"weight\":0.5,\"files\":[{\"path\":\"x\xef\xbf\xbd.u16\",\"bytes\":10,"
      "\"tokens\":5,\"format\":\"u16\",\"token_bytes\":2,\"hash\":\"000000000000001f\"}]}]}");
}

TEST_F(DataIdentityTest, RefusesDamagedTexts) {
  const std::string good = DataIdentityText(Identity({{"a", 0.5}, {"b", 0.25}}));
  ASSERT_TRUE(ParseDataIdentity(good).ok());
  const auto edited = [&good](const std::string& old, const std::string& replacement) {
    std::string text = good;
    const size_t at = text.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    return text.replace(at, old.size(), replacement);
  };
  for (const std::string number : {"4.0", "4e+0", "0.4e1"})  // as other writers have it
    EXPECT_EQ(DataIdentityText(*ParseDataIdentity(edited("\"seq_len\":4", "\"seq_len\":" + number))), good);
  const std::pair<std::string, std::string> edits[] = {
      {"\"seq_len\":4", "\"seq_len\":4.5"},
      {"\"seq_len\":4", "\"seq_len\":-4"},
      {"\"seq_len\":4", "\"seq_len\":0"},
      {"\"seq_len\":4", "\"seq_len\":1e99"},
      {"\"seq_len\":4", "\"seq_len\":26"},  // longer than the file
      {"\"seq_len\":4", "\"x\":4"},
      {"0.5", "0"},
      {"0.5", "-1"},
      {"0.5", "\"0.5\""},
      {"\"tokens\":25", "\"tokens\":-1"},
      {"\"tokens\":25", "\"tokens\":26"},
      {"\"tokens\":25", "\"tokens\":18446744073709551615"},
      {"\"bytes\":25", "\"bytes\":9223372036854775808"},
      {"\"bytes\":25", "\"bytes\":null"},
      {"\"format\":\"text\"", "\"format\":\"auto\""},
      {"\"format\":\"text\"", "\"format\":\"word\""},
      {"\"token_bytes\":1", "\"token_bytes\":3"},
      {"\"token_bytes\":1", "\"token_bytes\":4"},
      {"\"hash\":\"", "\"hash\":\"0"},
      {"\"hash\":\"", "\"way\":\"stacked\",\"hash\":\""},
      {"\"path\":\"", "\"path\":7,\"p\":\""},
      {"\"files\":[{", "\"files\":[],\"f\":[{"},
      {"\"sources\":[{", "\"sources\":[7,{"},
      {"\"sources\"", "\"s\""},
      {"}", ""}};
  for (const auto& [old, replacement] : edits) {
    const absl::Status status = ParseDataIdentity(edited(old, replacement)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << replacement;
    EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
  }
  for (const std::string text : {"", "7", "null", "[]", "{}", "{\"seq_len\":4,\"sources\":[]}"})
    EXPECT_FALSE(ParseDataIdentity(text).ok()) << text;
}

}  // namespace
}  // namespace ft
