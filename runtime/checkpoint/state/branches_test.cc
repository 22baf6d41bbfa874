#include "runtime/checkpoint/state/branches.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/testing/temp_folder.h"
#include "runtime/checkpoint/state/testing/made_state.h"

namespace ft {
namespace {

namespace fs = std::filesystem;

std::vector<uint64_t> StepsOf(const std::vector<CheckpointEntry>& entries) {
  std::vector<uint64_t> steps;
  for (const CheckpointEntry& entry : entries) steps.push_back(entry.step);
  return steps;
}

class BranchesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }

  std::string PathOf(uint64_t step) const { return folder_ / CheckpointName(step); }

  // A checkpoint as a run of that departure writes it.
  void Save(uint64_t step, const Departure& departure) {
    fs::remove_all(PathOf(step));
    proto::Manifest manifest;
    manifest.mutable_position()->set_steps(step);
    if (departure.branch.number() > 0) *manifest.mutable_branch() = departure.branch;
    const absl::Status saved = made::SaveMade(made::MadeState({1, 1}, /*sliced=*/false),
                                              CheckpointType::kFull, PathOf(step), manifest);
    ASSERT_TRUE(saved.ok()) << saved;
  }

  std::vector<BranchedCheckpoint> There() const { return ListBranches(folder_).value(); }
  // What auto tries.
  std::vector<uint64_t> Tried() const { return StepsOf(NewestBranch(There())); }

  Departure From(uint64_t step) const {
    for (const BranchedCheckpoint& one : There())
      if (one.entry.step == step) return Depart(There(), BranchPoint{*one.branch, step});
    ADD_FAILURE() << "no checkpoint of step " << step;
    return {};
  }
  Departure Anew() const { return Depart(There(), std::nullopt); }
  absl::StatusOr<std::string> Move(const Departure& departure, uint64_t published) const {
    return MoveAside(folder_, departure.left, {.folder = folder_, .step = published});
  }
  std::set<std::string> Names(const std::string& in = "") const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / in)) names.insert(entry.path().filename());
    return names;
  }

  const TempFolder temp_;
  const fs::path folder_ = temp_.Path("run");
};

TEST_F(BranchesTest, ARunThatIsTheOnlyOneHasOneBranch) {
  for (const uint64_t step : {10, 20, 30}) Save(step, Anew().left.empty() ? Anew() : From(step - 10));
  EXPECT_EQ(Tried(), std::vector<uint64_t>({30, 20, 10}));
  EXPECT_EQ(From(30).branch.number(), 0u);
  EXPECT_TRUE(From(30).left.empty());
}

TEST_F(BranchesTest, FromTheFirstCheckpointOnTheNewBranchIsTaken) {
  for (const uint64_t step : {10, 20, 30}) Save(step, {});
  const Departure departure = From(10);
  EXPECT_EQ(StepsOf(departure.left), std::vector<uint64_t>({30, 20}));
  EXPECT_EQ(Tried(), std::vector<uint64_t>({30, 20, 10})) << "nothing is left before it is written";
  Save(15, departure);
  EXPECT_EQ(Tried(), std::vector<uint64_t>({15, 10}));
  Save(20, departure);  // of the same step as one that is left
  EXPECT_EQ(Tried(), std::vector<uint64_t>({20, 15, 10}));
  EXPECT_EQ(StepsOf(From(20).left), std::vector<uint64_t>({30})) << "killed before it was moved";
}

TEST_F(BranchesTest, ARunThatBeginsAnewHasNoPast) {
  for (const uint64_t step : {0, 10}) Save(step, {});
  const Departure departure = Anew();
  EXPECT_EQ(StepsOf(departure.left), std::vector<uint64_t>({10, 0}));
  Save(5, departure);
  EXPECT_EQ(Tried(), std::vector<uint64_t>({5}));
}

// What is unreadable is tried as long as it may be of the run's past, and left where it cannot be.
TEST_F(BranchesTest, UnreadableAndUnfinishedOnes) {
  for (const uint64_t step : {10, 20, 30}) Save(step, {});
  std::ofstream(PathOf(10) + "/manifest.json") << "{}";
  std::ofstream(PathOf(30) + "/manifest.json") << "{}";
  fs::create_directories(PathOf(40));
  EXPECT_EQ(Tried(), std::vector<uint64_t>({40, 30, 20, 10}));
  const Departure departure = From(20);
  EXPECT_EQ(StepsOf(departure.left), std::vector<uint64_t>({30}));
}

TEST_F(BranchesTest, CountsNoFurtherThanNumbersGo) {
  Departure departure;
  departure.branch.set_number(~uint64_t{0});
  Save(10, departure);
  Save(20, {});
  EXPECT_FALSE(There()[1].branch.has_value());
  EXPECT_EQ(Anew().branch.number(), 1u);
}

TEST_F(BranchesTest, MovesAsideWhatIsLeft) {
  for (const uint64_t step : {10, 20, 30}) Save(step, {});
  const Departure departure = From(10);
  fs::rename(PathOf(20), folder_ / ".replaced-step-00000020");  // as Publish leaves it
  Save(20, departure);
  const auto aside = Move(departure, 20);
  ASSERT_TRUE(aside.ok()) << aside.status();
  EXPECT_EQ(*aside, folder_ / "abandoned-1");
  EXPECT_EQ(Names(), std::set<std::string>({"step-00000010", "step-00000020", "abandoned-1"}));
  EXPECT_EQ(Names("abandoned-1"), std::set<std::string>({"step-00000020", "step-00000030"}));
  EXPECT_EQ(ListBranches(*aside).value()[1].branch->number(), 0u) << "the one that was there before";
  EXPECT_EQ(Move(departure, 20).value(), "") << "all were";
  const Departure anew = Anew();
  EXPECT_EQ(Move(anew, 40).value(), folder_ / "abandoned-2");
  EXPECT_EQ(Names(), std::set<std::string>({"abandoned-1", "abandoned-2"}));
}

TEST_F(BranchesTest, SaysWhatCannotBeMoved) {
  for (const uint64_t step : {10, 20}) Save(step, {});
  const Departure departure = From(10);
  std::ofstream(folder_ / "abandoned-1") << "in the way";
  EXPECT_EQ(Move(departure, 15).value(), folder_ / "abandoned-2");
  EXPECT_NE(MoveAside("/dev/null", {{1, PathOf(10), true}}, {}).status().message().find("/dev/null"),
            std::string::npos);
}

// Runs that go back at random and are killed before, while or after they move what they leave: what is tried
// is always the past of the run that saved last, as a list kept beside says.
TEST_F(BranchesTest, AnyHistory) {
  std::mt19937 random(12);
  for (int history = 0; history < 20; ++history) {
    SetUp();
    std::vector<uint64_t> past;  // of the run that saved last
    for (int run = 0; run < 8; ++run) {
      Departure departure;
      if (past.empty() || random() % 4 == 0) {
        departure = Anew();
        past.clear();
      } else {
        // From any of its past, or from where it is.
        const size_t kept = random() % 2 == 0 ? past.size() : 1 + random() % past.size();
        past.resize(kept);
        departure = From(past.back());
      }
      uint64_t step = past.empty() ? 0 : past.back();
      for (uint64_t saves = 1 + random() % 3; saves > 0; --saves) {
        step += 1 + random() % 4;
        past.push_back(step);
        Save(step, departure);
        if (random() % 2 == 0) continue;
        std::vector<CheckpointEntry> some = departure.left;  // as far as it came
        std::erase_if(some, [&](const CheckpointEntry& entry) {
          return random() % 3 == 0 || std::count(past.begin(), past.end(), entry.step) > 0;
        });
        ASSERT_TRUE(MoveAside(folder_, some, {.folder = folder_, .step = step}).ok());
      }
      EXPECT_EQ(Tried(), std::vector<uint64_t>(past.rbegin(), past.rend())) << history << " " << run;
    }
  }
}

}  // namespace
}  // namespace ft
