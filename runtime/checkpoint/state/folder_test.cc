#include "runtime/checkpoint/state/folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

namespace fs = std::filesystem;

class FolderTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }

  // A folder with one file.
  void Put(const std::string& name, const std::string& contents) {
    fs::create_directories(folder_ / name);
    std::ofstream(folder_ / name / "manifest.json") << contents;
  }
  std::string Get(const std::string& name) {
    std::ifstream file(folder_ / name / "manifest.json");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::set<std::string> Names() {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.insert(entry.path().filename());
    return names;
  }

  const TempFolder temp_;
  const fs::path folder_ = temp_.Path("run");
};

// Names of steps that are not written as CheckpointName does are none.
TEST_F(FolderTest, NamesAreThoseThatAreMade) {
  EXPECT_EQ(StepOfName("step-00000012"), 12);
  EXPECT_EQ(StepOfName("step-123456789"), 123456789);
  for (const char* name : {"step-12", "step-000000012", "step--0000012", "step-0000001x", "step-", "",
                           ".staged-step-00000012", "step-99999999999999999999"})
    EXPECT_EQ(StepOfName(name), -1) << name;
}

TEST_F(FolderTest, PublishesAndReplaces) {
  const StagedCheckpoint staged = {.folder = folder_, .step = 7};
  Put(".staged-step-00000007", "first");
  ASSERT_TRUE(Publish(staged).ok());
  Put(".staged-step-00000007", "second");
  ASSERT_TRUE(Publish(staged).ok());
  EXPECT_EQ(Names(), std::set<std::string>({"step-00000007"}));
  EXPECT_EQ(Get("step-00000007"), "second");
}

// Between the two renames of a file system that exchanges no names: the older one comes back.
TEST_F(FolderTest, PutsBackWhatWasBeingReplaced) {
  Put(".replaced-step-00000007", "old");
  Put(".staged-step-00000007", "new");
  ASSERT_TRUE(RemoveLeftovers(folder_).ok());
  EXPECT_EQ(Names(), std::set<std::string>({"step-00000007"}));
  EXPECT_EQ(Get("step-00000007"), "old");
}

TEST_F(FolderTest, RemovesWhatWasReplacedAndAllElseThatIsLeft) {
  Put("step-00000007", "new");
  Put(".replaced-step-00000007", "old");
  Put(".removed-step-00000003", "");
  Put(".staged-step-00000008", "");
  Put(".staged-by-someone-else", "");
  Put("step-notes", "");
  ASSERT_TRUE(RemoveLeftovers(folder_).ok());
  EXPECT_EQ(Names(), std::set<std::string>({"step-00000007", ".staged-by-someone-else", "step-notes"}));
  EXPECT_EQ(Get("step-00000007"), "new");
}

TEST_F(FolderTest, RemovesACheckpointAndNotWhatALinkLeadsTo) {
  Put("step-00000001", "");
  Put("elsewhere", "kept");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "step-00000002");
  ASSERT_TRUE(RemoveCheckpoint(folder_ / "step-00000001").ok());
  ASSERT_TRUE(RemoveCheckpoint(folder_ / "step-00000002").ok());
  ASSERT_TRUE(RemoveCheckpoint(folder_ / "step-00000003").ok());  // is not there
  EXPECT_EQ(Names(), std::set<std::string>({"elsewhere"}));
  EXPECT_EQ(Get("elsewhere"), "kept");
}

TEST_F(FolderTest, MakesFoldersAndSaysWhatIsInTheWay) {
  EXPECT_TRUE(MakeFolders((folder_ / "a/b//c/").string()).ok());
  EXPECT_TRUE(fs::is_directory(folder_ / "a/b/c"));
  EXPECT_TRUE(MakeFolders(folder_ / "a/b/c").ok());
  std::ofstream(folder_ / "file") << "x";
  const absl::Status status = MakeFolders(folder_ / "file/below");
  EXPECT_NE(status.message().find("file/below"), std::string::npos) << status;
}

}  // namespace
}  // namespace ft
