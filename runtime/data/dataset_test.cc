#include "runtime/data/dataset.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/exit_status.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/data/data_text.h"
#include "runtime/data/evaluation_batches.h"
#include "runtime/data/testing/raw.h"

namespace ft {
namespace {

// `count` tokens that begin with `first`.
template <typename T>
std::string Tokens(int first, int count) {
  std::vector<T> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(static_cast<T>(first + i));
  return Raw(tokens);
}

class DatasetTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_.Path("d")); }

  std::string In(const std::string& name) const { return folder_.Path("d/" + name); }

  // Token `at` of a sequence.
  static int32_t Token(const Dataset& dataset, int64_t sequence, size_t at) {
    std::vector<int32_t> inputs(dataset.seq_len()), targets(dataset.seq_len());
    dataset.Read(sequence, {inputs.data(), targets.data()});
    for (size_t i = 1; i < inputs.size(); ++i) EXPECT_EQ(inputs[i], targets[i - 1]);
    return at < inputs.size() ? inputs[at] : targets.back();
  }

  std::string Refused(const std::vector<DataEntry>& entries, int status = kExitBadInput) const {
    const auto dataset = OpenDataset(entries, 256, 4);
    EXPECT_EQ(ExitStatus(dataset.status()), status) << dataset.status();
    return std::string(dataset.status().message());
  }

  TempFolder folder_;
};

TEST_F(DatasetTest, NoSequenceCrossesFiles) {
  // 2, 1 and 3 sequences of 4, with 3, 0 and 2 tokens to spare; the files' tokens do not follow each other.
  folder_.Write("d/a.u16", Tokens<uint16_t>(0, 12));
  folder_.Write("d/b.u16", Tokens<uint16_t>(50, 5));
  folder_.Write("d/c.u16", Tokens<uint16_t>(100, 15));
  const auto dataset = OpenDataset(folder_.Path("d"), 256, 4);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->num_sequences(), 6);
  EXPECT_EQ((*dataset)->num_tokens(), 32);
  ASSERT_EQ((*dataset)->sources().size(), 1u);
  const int32_t first[] = {0, 4, 50, 100, 104, 108};
  for (int64_t sequence = 0; sequence < 6; ++sequence) {
    EXPECT_EQ(Token(**dataset, sequence, 0), first[sequence]);
    EXPECT_EQ(Token(**dataset, sequence, 4), first[sequence] + 4);
  }
  EXPECT_EQ(DataText(**dataset),
            "3 files, " + In("a.u16") + " ... " + In("c.u16") + " (u16, 32 tokens, 6 sequences)");
  EXPECT_TRUE(SourceLines(**dataset).empty());
}

TEST_F(DatasetTest, EveryFileHasAFormatOfItsOwn) {
  folder_.Write("d/1.txt", "some text that is text");
  folder_.Write("d/2.u16", Tokens<uint16_t>(0, 9));
  folder_.Write("d/3.u32", Tokens<uint32_t>(200, 9));
  folder_.Write(
      "d/4", Raw(std::vector<int32_t>{20240520, 1, 9}) + std::string(253 * 4, 0) + Tokens<uint16_t>(70, 9));
  const auto dataset = OpenDataset(folder_.Path("d"), 256, 4);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->num_sequences(), 5 + 2 + 2 + 2);
  EXPECT_EQ(Token(**dataset, 0, 0), 's');
  EXPECT_EQ(Token(**dataset, 6, 0), 4);
  EXPECT_EQ(Token(**dataset, 8, 1), 205);
  EXPECT_EQ(Token(**dataset, 10, 3), 77);
  EXPECT_NE(DataText(**dataset).find("(text and u16 and u32 and llmc, 49 tokens, 11 sequences)"),
            std::string::npos);
  // All of them are checked.
  folder_.Write("d/3.u32", Tokens<uint32_t>(250, 9));
  EXPECT_EQ(
      Refused({{.path = folder_.Path("d")}}),
      "'" + In("3.u32") +
          "': token 6 has the value 256, outside the model's vocabulary of 256 (0 ... 255) (a folder is read "
          "whole; name files in it by a glob, such as 'folder/*.bin')");
}

TEST_F(DatasetTest, WeightsMakeSources) {
  folder_.Write("a", "aaaaaaaaaaaaa");
  folder_.Write("d/b", "bbbbbbbbb");
  folder_.Write("d/c", "ccccc");
  const auto dataset =
      OpenDataset({{.path = folder_.Path("a"), .weight = 7}, {.path = folder_.Path("d/*"), .weight = 3}}, 256,
                  4, DataFormat::kText);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const std::vector<DataSource>& sources = (*dataset)->sources();
  ASSERT_EQ(sources.size(), 2u);
  EXPECT_EQ(sources[0].num_sequences, 3);
  EXPECT_EQ(sources[1].first_sequence, 3);
  EXPECT_EQ(sources[1].num_sequences, 3);
  EXPECT_EQ((*dataset)->files(sources[1]).size(), 2u);
  EXPECT_EQ(Token(**dataset, 2, 0), 'a');
  EXPECT_EQ(Token(**dataset, 3, 0), 'b');
  EXPECT_EQ(Token(**dataset, 5, 0), 'c');
  EXPECT_EQ(DataText(**dataset), "2 sources (text, 27 tokens, 6 sequences)");
  EXPECT_EQ(SourceLines(**dataset),
            (std::vector<std::string>{
                "70% from " + folder_.Path("a") + " (text, 13 tokens, 3 sequences)",
                "30% from 2 files, " + In("b") + " ... " + In("c") + " (text, 14 tokens, 3 sequences)"}));
}

TEST_F(DatasetTest, RefusesAFileByItsName) {
  const std::string good = folder_.Write("good", "long enough");
  EXPECT_EQ(Refused({{.path = good}, {.path = folder_.Write("short", "abcd")}}),
            "'" + folder_.Path("short") +
                "' is too short: it holds 4 tokens, and one sequence of length 4 needs 5");
  EXPECT_EQ(Refused({{.path = good}, {.path = folder_.Path("absent")}}, kExitIo),
            "cannot open '" + folder_.Path("absent") + "': No such file or directory");
  EXPECT_EQ(Refused({{.path = good}, {.path = folder_.Path("q*")}}, kExitIo),
            "no file matches '" + folder_.Path("q*") + "'");
  EXPECT_EQ(Refused({{.path = folder_.Path("d")}}),
            "the folder '" + folder_.Path("d") + "' has no file in it");
  EXPECT_EQ(Refused({{.path = good, .weight = 1}, {.path = folder_.Path("d/../g*"), .weight = 2}}),
            "'" + folder_.Path("d/../good") + "' is named twice, also as '" + good +
                "'; name it once (a weight says how often a source is drawn)");
  std::filesystem::create_symlink(good, folder_.Path("soft"));
  std::filesystem::create_hard_link(good, folder_.Path("hard"));
  EXPECT_EQ(Refused({{.path = good}, {.path = good}}),
            "'" + good + "' is named twice; name it once (a weight says how often a source is drawn)");
  for (const char* link : {"soft", "hard"}) {
    const std::string words = "' is named twice, also as '";
    EXPECT_NE(Refused({{.path = good}, {.path = folder_.Path(link)}}).find(link + words + good),
              std::string::npos);
    EXPECT_NE(
        Refused({{.path = folder_.Path(link), .weight = 1}, {.path = good, .weight = 2}}).find(good + words),
        std::string::npos);
  }
  EXPECT_NE(Refused({{.path = folder_.Path("soft")}, {.path = folder_.Path("hard")}}).find("named twice"),
            std::string::npos);
  std::filesystem::create_directory(In("sub"));
  folder_.Write("d/good", "long enough");
  EXPECT_EQ(
      Refused({{.path = folder_.Path("d")}}),
      "'" + In("sub") +
          "' is a directory, not a regular file (a folder is read whole; name files in it by a glob, such as "
          "'folder/*.bin')");
}

TEST_F(DatasetTest, DoubtsAreOneLine) {
  for (const char* name : {"d/a", "d/b", "d/c"}) folder_.Write(name, "text that is not tokens ");
  const std::string first = "'" + In("a") + "' is read as --data-format=u16 has it, but it looks like text";
  EXPECT_EQ((*OpenDataset(folder_.Path("d"), 65536, 4, DataFormat::kU16))->doubt(),
            first + " (and 2 more files that look like something else)");
  EXPECT_EQ((*OpenDataset(folder_.Path("d/[ab]"), 65536, 4, DataFormat::kU16))->doubt(),
            first + " (and 1 more file that looks like something else)");
  EXPECT_EQ((*OpenDataset(In("a"), 65536, 4, DataFormat::kU16))->doubt(), first);
  EXPECT_EQ((*OpenDataset(In("a"), 256, 4))->doubt(), "");
}

TEST_F(DatasetTest, ManyFilesHoldNoDescriptors) {
  for (int i = 0; i < 300; ++i)
    folder_.Write("d/" + std::to_string(1000 + i), std::string(9, static_cast<char>(33 + i % 90)));
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit few = {.rlim_cur = 32, .rlim_max = limit.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  const auto dataset = OpenDataset(folder_.Path("d/*"), 256, 4);
  setrlimit(RLIMIT_NOFILE, &limit);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->num_sequences(), 600);
  for (int64_t sequence = 0; sequence < 600; ++sequence)
    EXPECT_EQ(Token(**dataset, sequence, 2), 33 + sequence / 2 % 90);
}

TEST_F(DatasetTest, EvaluationGoesThroughAllFiles) {
  folder_.Write("d/a.u16", Tokens<uint16_t>(0, 12));
  folder_.Write("d/b.u16", Tokens<uint16_t>(50, 8));
  const auto dataset = *OpenDataset(folder_.Path("d"), 256, 4);
  const EvaluationBatches batches(*dataset, 2, 0, 1, 0);
  ASSERT_EQ(batches.num_batches(), 2);
  int32_t tokens[8], targets[8];
  batches.Fill(1, {tokens, targets});
  EXPECT_EQ(tokens[0], 50);
  EXPECT_EQ(targets[3], 54);
  EXPECT_EQ(targets[4], -1);
}

}  // namespace
}  // namespace ft
