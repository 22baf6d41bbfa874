#include "runtime/collective/nccl/stall_detector.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace ft::nccl {
namespace {

class MapStore final : public Store {
 public:
  absl::Status Set(absl::string_view key, absl::string_view value) override {
    ++calls;
    values[std::string(key)] = std::string(value);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Get(absl::string_view key, absl::Time) override {
    ++calls;
    return values.at(std::string(key));
  }
  absl::StatusOr<int64_t> Add(absl::string_view, int64_t) override { return absl::UnimplementedError(""); }
  absl::Status Wait(absl::Span<const std::string>, absl::Time) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<bool> Check(absl::Span<const std::string> keys) override {
    ++calls;
    if (gone) return absl::DeadlineExceededError("the store does not answer");
    for (const std::string& key : keys) {
      if (!values.contains(key)) return false;
    }
    return true;
  }

  std::map<std::string, std::string> values;
  int calls = 0;
  bool gone = false;
};

StallDetector Detector(Store* store, int rank) {
  StallDetector::Options options;
  options.store = store;
  options.key = "group";
  options.rank = rank;
  options.members = {"rank 4", "rank 5", "rank 6"};
  options.timeout = absl::Seconds(100);
  return StallDetector(options);
}

const absl::Time kStart = absl::FromUnixSeconds(1000);
absl::Time At(int seconds) { return kStart + absl::Seconds(seconds); }
Position OnDevice(uint64_t sequence) { return {Position::Side::kDevice, sequence, "gather h.3"}; }

TEST(StallDetectorTest, ARunThatGoesWellAsksNobody) {
  MapStore store;
  StallDetector detector = Detector(&store, 0);
  for (int second = 0; second < 1000; second += 20) {
    EXPECT_TRUE(detector.Look(At(second), OnDevice(static_cast<uint64_t>(second) / 40)).ok());
    EXPECT_TRUE(detector
                    .Look(At(second + 5), second % 60 == 0 ? std::nullopt
                                                           : std::optional<Position>(OnDevice(
                                                                 static_cast<uint64_t>(second) / 40)))
                    .ok());
  }
  EXPECT_EQ(store.calls, 0);
}

TEST(StallDetectorTest, RanksThatAreElsewhereAreMissing) {
  MapStore store;
  StallDetector first = Detector(&store, 0), second = Detector(&store, 1), third = Detector(&store, 2);
  EXPECT_TRUE(first.Look(At(0), OnDevice(17)).ok());
  EXPECT_TRUE(second.Look(At(40), OnDevice(17)).ok());
  EXPECT_TRUE(third.Look(At(0), OnDevice(16)).ok());  // hung earlier
  for (const int now : {55, 95}) {
    EXPECT_TRUE(first.Look(At(now), OnDevice(17)).ok());
    EXPECT_TRUE(second.Look(At(now), OnDevice(17)).ok());
    EXPECT_TRUE(third.Look(At(now), OnDevice(16)).ok());
  }
  EXPECT_TRUE(first.Look(At(101), OnDevice(17)).ok()) << "late ranks have a moment more";
  const absl::Status status = first.Look(At(103), OnDevice(17));
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(status.message(), "timed out after 1m40s in 'gather h.3' #17 waiting for rank 6");
  EXPECT_EQ(third.Look(At(103), OnDevice(16)).message(),
            "timed out after 1m40s in 'gather h.3' #16 waiting for rank 4, rank 5");
}

TEST(StallDetectorTest, EnqueuingAndTheDeviceAreCountedApart) {
  MapStore store;
  StallDetector first = Detector(&store, 0), second = Detector(&store, 1);
  const Position enqueuing = {Position::Side::kEnqueue, 17, "gather h.3"};
  for (const int now : {0, 60}) {
    EXPECT_TRUE(first.Look(At(now), OnDevice(17)).ok());
    EXPECT_TRUE(second.Look(At(now), enqueuing).ok());
  }
  EXPECT_NE(first.Look(At(120), OnDevice(17)).message().find("waiting for rank 5, rank 6"),
            std::string::npos);
}

TEST(StallDetectorTest, AllRanksMayBeThere) {
  MapStore store;
  std::vector<StallDetector> all;
  for (int rank = 0; rank < 3; ++rank) all.push_back(Detector(&store, rank));
  for (const int now : {0, 60}) {
    for (StallDetector& one : all) EXPECT_TRUE(one.Look(At(now), OnDevice(3)).ok());
  }
  const absl::Status status = all[1].Look(At(120), OnDevice(3));
  EXPECT_NE(status.message().find("'gather h.3' #3, which all ranks have reached"), std::string::npos)
      << status;
}

// Each question may take a minute.
TEST(StallDetectorTest, AStoreThatIsGoneIsAskedOnce) {
  MapStore store;
  StallDetector detector = Detector(&store, 1);
  for (const int now : {0, 60}) EXPECT_TRUE(detector.Look(At(now), OnDevice(3)).ok());
  store.gone = true;
  const int before = store.calls;
  EXPECT_EQ(
      detector.Look(At(120), OnDevice(3)).message(),
      "timed out after 1m40s in 'gather h.3' #3; who is missing is not known: the store does not answer");
  EXPECT_EQ(store.calls, before + 1);
}

}  // namespace
}  // namespace ft::nccl
