#include "tools/ftc/config/train_yaml.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/base/exit_status.h"

namespace ftc {
namespace {

std::string Mistake(const std::string& text) {
  const absl::StatusOr<TrainYaml> file = ParseTrainYaml(text, "t.yaml");
  if (file.ok()) return "no mistake";
  EXPECT_EQ(ft::ExitStatus(file.status()), ft::kExitBadInput);
  return std::string(file.status().message());
}

TEST(TrainYamlTest, LeavesWithTheirPlaces) {
  const absl::StatusOr<TrainYaml> file = ParseTrainYaml("a:\n  b: 'x y'\n  c: [1, 2]\nd: ~\n", "t.yaml");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->entries.size(), 4u);
  EXPECT_TRUE(file->entries[0].is_section);
  EXPECT_EQ(file->entries[1].path, "a.b");
  EXPECT_EQ(file->entries[1].text, "x y");
  EXPECT_EQ(file->entries[1].line, 2);
  EXPECT_EQ(file->entries[1].column, 6);
  EXPECT_EQ(file->entries[2].text, "1,2");
  EXPECT_TRUE(file->entries[2].is_list);
  EXPECT_EQ(file->entries[3].text, "null");
  EXPECT_EQ(file->entries[3].line, 4);
}

TEST(TrainYamlTest, WhatHoldsNothing) {
  const absl::StatusOr<TrainYaml> file = ParseTrainYaml("a: ''\nb: []\nc: {}\nd: [[x], '']\n", "t.yaml");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->entries.size(), 4u);
  for (const YamlEntry& entry : file->entries) EXPECT_EQ(entry.text, "") << entry.path;
  EXPECT_TRUE(file->entries[1].is_list);
  EXPECT_FALSE(file->entries[1].is_nested);
  EXPECT_TRUE(file->entries[2].is_section);
  EXPECT_TRUE(file->entries[3].is_nested);
}

TEST(TrainYamlTest, WhatIsNoTrainYaml) {
  EXPECT_EQ(Mistake("a: 1\nb: 2\na: 3\n"), "t.yaml:3:1: 'a' is given twice, first in line 1");
  EXPECT_EQ(Mistake("s:\n  a: 1\n  a: 3\n"), "t.yaml:3:3: 's.a' is given twice, first in line 2");
  EXPECT_TRUE(Mistake("a: [1, 2\nb: 3\n").starts_with("t.yaml:2:")) << Mistake("a: [1, 2\nb: 3\n");
  EXPECT_TRUE(Mistake("a: 1\n\tb: 2\n").starts_with("t.yaml:2:")) << Mistake("a: 1\n\tb: 2\n");
  EXPECT_TRUE(Mistake("s:\n\ta: 2\n").starts_with("t.yaml:2:")) << Mistake("s:\n\ta: 2\n");
  EXPECT_EQ(Mistake("- a\n- b\n"), "t.yaml:1:1: expected keys and values, such as 'strategy: full_shard'");
  EXPECT_EQ(Mistake("word"), "t.yaml:1:1: expected keys and values, such as 'strategy: full_shard'");
  EXPECT_EQ(Mistake("a: 1\nb: \xff\n"), "t.yaml:2: byte 0xff is not UTF-8 text");
  EXPECT_EQ(Mistake("a: \xed\xa0\x80"), "t.yaml:1: byte 0xed is not UTF-8 text");
  EXPECT_EQ(Mistake(std::string("a: 1\n\0", 6)), "t.yaml:2: byte 0x00 is not UTF-8 text");
  EXPECT_NE(Mistake("a: 1\n---\nb: 2\n").find("a second document"), std::string::npos);
  EXPECT_NE(Mistake("a: !!python/object x").find("tag"), std::string::npos);
  EXPECT_NE(Mistake("a: !mine x").find("tag"), std::string::npos);
  EXPECT_NE(Mistake("[a, b]: 3").find("a key that is no word"), std::string::npos);
  EXPECT_NE(Mistake("a: &x [*x]").find("within its own anchor"), std::string::npos);
  EXPECT_NE(Mistake("a: *x").find("t.yaml:1:"), std::string::npos);
  EXPECT_EQ(Mistake("a: 'x\ny'\n"), "no mistake");
}

TEST(TrainYamlTest, DepthAndSizeAreBounded) {
  EXPECT_NE(Mistake("a: " + std::string(5000, '[')).find("nested deeper"), std::string::npos);
  EXPECT_NE(Mistake(std::string(90000, '{')).find("nested deeper"), std::string::npos);
  std::string laughs = "a0: &a0 {x: 1, y: 2}\n";
  for (int i = 1; i < 30; ++i) {
    const std::string name = "a" + std::to_string(i), below = "*a" + std::to_string(i - 1);
    laughs += name + ": &" + name + " {x: " + below + " , y: " + below + " }\n";
  }
  EXPECT_NE(Mistake(laughs).find("more than 10000 entries"), std::string::npos);
  std::string merges = "a0: &a0 {x: 1, y: 2}\n";
  for (int i = 1; i < 30; ++i) {
    const std::string name = "a" + std::to_string(i), below = "*a" + std::to_string(i - 1);
    merges += name + ": &" + name + " {<<: [" + below + " , " + below + " ]}\n";
  }
  EXPECT_NE(Mistake(merges).find("more than 10000 entries"), std::string::npos);
}

TEST(TrainYamlTest, FilesThatCannotBeRead) {
  EXPECT_EQ(ft::ExitStatus(ReadTrainYaml("/no/such/train.yaml").status()), ft::kExitIo);
  EXPECT_EQ(ft::ExitStatus(ReadTrainYaml("/").status()), ft::kExitBadInput);
  EXPECT_EQ(ft::ExitStatus(ReadTrainYaml("/dev/zero").status()), ft::kExitBadInput);
}

}  // namespace
}  // namespace ftc
