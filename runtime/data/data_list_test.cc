#include "runtime/data/data_list.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/exit_status.h"
#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

using Entries = std::vector<std::pair<std::string, double>>;  // weight 0: none

class DataListTest : public testing::Test {
 protected:
  static Entries Parsed(const std::string& text) {
    const auto entries = ParseDataList(text);
    EXPECT_TRUE(entries.ok()) << entries.status();
    Entries found;
    if (entries.ok())
      for (const DataEntry& entry : *entries) found.emplace_back(entry.path, entry.weight.value_or(0));
    return found;
  }

  // The message with which a list is refused.
  static std::string Refused(const std::string& text) {
    const absl::Status status = ParseDataList(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
    return std::string(status.message());
  }

  // Names of the files that are found, without the folder of the test; the message where there are none.
  std::vector<std::string> Found(const std::string& name) const {
    const auto files = FindDataFiles(folder_.Path(name));
    if (!files.ok()) return {std::string(files.status().message())};
    std::vector<std::string> names;
    for (const DataPath& file : *files) {
      EXPECT_EQ(file.path.substr(0, folder_.Path("").size()), folder_.Path(""));
      names.push_back(file.path.substr(folder_.Path("").size()));
    }
    return names;
  }

  void Folder(const std::string& name) const { std::filesystem::create_directory(folder_.Path(name)); }

  TempFolder folder_;
};

using Names = std::vector<std::string>;

TEST_F(DataListTest, ListsWithAndWithoutWeights) {
  EXPECT_EQ(Parsed("a.bin"), (Entries{{"a.bin", 0}}));
  EXPECT_EQ(Parsed("a.bin,b*.bin,/c/d"), (Entries{{"a.bin", 0}, {"b*.bin", 0}, {"/c/d", 0}}));
  EXPECT_EQ(Parsed("a.bin:0.7,b.bin:.3"), (Entries{{"a.bin", 0.7}, {"b.bin", 0.3}}));
  EXPECT_EQ(Parsed("a:7"), (Entries{{"a", 7}}));
  EXPECT_EQ(Parsed("a.bin:1e300,b:1e300"), (Entries{{"a.bin", 1e300}, {"b", 1e300}}));
}

TEST_F(DataListTest, HostileWeights) {
  for (const std::string weight : {"0", "nan", "-1", "1e400", "inf", "-inf", "", "x", "0x", "1.2.3", "1e-400",
                                   "-0", "0.5 0.5", "NaN", "b.bin"}) {
    EXPECT_EQ(Refused("a.bin:" + weight),
              "'a.bin:" + weight + "': the weight '" + weight +
                  "' is no finite number above 0 (and no file has that whole name)");
    Refused("b.bin:1,a.bin:" + weight);
  }
  EXPECT_EQ(Refused("a:1,b:1e-10"),
            "the weight 1e-10 is less than a billionth of all weights together; leave that entry out");
  Refused("a:1e308,b:1e-308");
  EXPECT_EQ(Refused("a:1,b"), "'a' has a weight and 'b' has none; give one to every entry or to none");
  EXPECT_EQ(Refused("a,b,c:0.5"), "'c' has a weight and 'a' has none; give one to every entry or to none");
  for (const std::string list : {"", ",", "a,,b", "a,", ",a", ":1", "a:1,:1"}) {
    EXPECT_NE(Refused(list).find("has an entry without a path"), std::string::npos) << list;
  }
}

TEST_F(DataListTest, NamesOfFilesThatLookLikeLists) {
  const std::string comma = folder_.Write("a,b.txt", "x"), colon = folder_.Write("c:7", "x"),
                    both = folder_.Write("d:1,e:2", "x");
  EXPECT_EQ(Parsed(comma), (Entries{{comma, 0}}));
  EXPECT_EQ(Parsed(colon), (Entries{{colon, 0}}));
  EXPECT_EQ(Parsed(both), (Entries{{both, 0}}));
  EXPECT_EQ(Parsed(colon + "," + colon), (Entries{{colon, 0}, {colon, 0}}));
  EXPECT_EQ(Parsed(colon + ":2"), (Entries{{colon, 2}}));
  EXPECT_EQ(Parsed("/run:3/x"), (Entries{{"/run:3/x", 0}}));
  EXPECT_EQ(Parsed("x:*.bin,y:[ab]"), (Entries{{"x:*.bin", 0}, {"y:[ab]", 0}}));
  EXPECT_EQ(Parsed("run:1/x*.bin:3"), (Entries{{"run:1/x*.bin", 3}}));
  Folder("f:9");
  EXPECT_EQ(Parsed(folder_.Path("f:9")), (Entries{{folder_.Path("f:9"), 0}}));
}

TEST_F(DataListTest, FilesFoldersAndGlobs) {
  Folder("d");
  for (const char* name : {"d/b", "d/a", "d/a10", "d/a2", "d/.hidden", "x1.bin", "x2.bin", "y.txt"})
    folder_.Write(name, "x");
  EXPECT_EQ(Found("y.txt"), Names{"y.txt"});
  EXPECT_EQ(Found("absent"), Names{"absent"});  // whoever opens it says so
  EXPECT_EQ(Found("d"), (Names{"d/a", "d/a10", "d/a2", "d/b"}));
  EXPECT_EQ(Found("d/"), (Names{"d/a", "d/a10", "d/a2", "d/b"}));
  EXPECT_EQ(Found("x*.bin"), (Names{"x1.bin", "x2.bin"}));
  EXPECT_EQ(Found("x[2-9].bin"), (Names{"x2.bin"}));
  EXPECT_EQ(Found("x?.bin"), (Names{"x1.bin", "x2.bin"}));
  EXPECT_EQ(Found("[dy]*"), (Names{"d/a", "d/a10", "d/a2", "d/b", "y.txt"}));
  EXPECT_EQ(Found("*/a*"), (Names{"d/a", "d/a10", "d/a2"}));
  folder_.Write("x*.bin", "x");  // a name, now
  EXPECT_EQ(Found("x*.bin"), (Names{"x*.bin"}));
}

TEST_F(DataListTest, FoldersAreTakenWithAllThatIsInThem) {
  Folder("d");
  Folder("d/sub");
  EXPECT_EQ(mkfifo(folder_.Path("d/pipe").c_str(), 0600), 0);
  EXPECT_EQ(Found("d"), (Names{"d/pipe", "d/sub"}));  // for whoever opens them to refuse
  EXPECT_TRUE((*FindDataFiles(folder_.Path("d")))[0].of_folder);
  EXPECT_FALSE((*FindDataFiles(folder_.Path("d/p*")))[0].of_folder);
}

TEST_F(DataListTest, NothingIsFound) {
  Folder("empty");
  folder_.Write("empty/.hidden", "x");
  EXPECT_EQ(Found("empty"), Names{"the folder '" + folder_.Path("empty") + "' has no file in it"});
  EXPECT_EQ(Found("q*.bin"), Names{"no file matches '" + folder_.Path("q*.bin") + "'"});
  EXPECT_EQ(ExitStatus(FindDataFiles(folder_.Path("q*.bin")).status()), kExitIo);
  EXPECT_EQ(ExitStatus(FindDataFiles(folder_.Path("empty")).status()), kExitBadInput);
}

// Not for lack of permission, which root never lacks.
TEST_F(DataListTest, AFolderThatCannotBeRead) {
  Folder("d");
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit none = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  const Names folder = Found("d"), glob = Found("d/*");
  setrlimit(RLIMIT_NOFILE, &limit);
  const std::string what = ": Too many open files";
  EXPECT_EQ(folder, Names{"cannot read the folder '" + folder_.Path("d") + "'" + what});
  EXPECT_EQ(glob, Names{"cannot read the folder '" + folder_.Path("d") + "'" + what});
}

}  // namespace
}  // namespace ft
