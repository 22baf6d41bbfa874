#include "runtime/checkpoint/state/staged_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

namespace fs = std::filesystem;

void Put(const std::string& folder, const std::string& name) { std::ofstream(folder + "/" + name) << name; }

TEST(StagedFolderTest, IsThereWholeOrNotAtAll) {
  const TempFolder temp;
  const std::string to = temp.Path("a/b/step-00000001");
  {
    auto staged = StagedFolder::Make(to + "/");
    ASSERT_TRUE(staged.ok()) << staged.status();
    Put(staged->path(), "file");
    EXPECT_FALSE(fs::exists(to));
    ASSERT_TRUE(staged->Publish().ok());
  }
  EXPECT_TRUE(fs::exists(to + "/file"));
  EXPECT_FALSE(StagedFolder::Make(to).ok());
  {
    auto staged = StagedFolder::Make(temp.Path("given-up"));
    ASSERT_TRUE(staged.ok());
    Put(staged->path(), "file");
  }
  EXPECT_EQ(temp.NumFiles(), 1u);  // "a" alone
}

TEST(StagedFolderTest, WhatCameMeanwhileIsNotReplaced) {
  const TempFolder temp;
  auto staged = StagedFolder::Make(temp.Path("to"));
  ASSERT_TRUE(staged.ok());
  Put(staged->path(), "ours");
  fs::create_directory(temp.Path("to"));  // empty: a plain rename would replace it
  EXPECT_EQ(staged->Publish().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(fs::is_empty(temp.Path("to")));
}

TEST(StagedFolderTest, OneProcessAtATimeAndLeftoversGo) {
  const TempFolder temp;
  const std::string to = temp.Path("to");
  std::optional<StagedFolder> first(StagedFolder::Make(to).value());
  Put(first->path(), "of the first");
  EXPECT_EQ(StagedFolder::Make(to).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(fs::exists(first->path() + "/of the first"));
  const std::string path = first->path();
  first.reset();
  fs::create_directories(path + "/sub");  // as a process that was killed leaves it
  Put(path, "of the dead");
  auto second = StagedFolder::Make(to);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(fs::is_empty(second->path()));
}

TEST(StagedFolderTest, RefusesWhatIsNoName) {
  for (const char* name : {"", ".", "..", "/", "a/.."})
    EXPECT_EQ(StagedFolder::Make(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
}

}  // namespace
}  // namespace ft
