#include "runtime/executor/activity.h"

#include <atomic>
#include <set>
#include <string_view>
#include <thread>

#include "gtest/gtest.h"

namespace ft {
namespace {

TEST(ActivityTest, IsNeverSeenHalfWritten) {
  ActivityRecord record;
  EXPECT_EQ(record.Read().activity, Activity::kNone);
  std::atomic<bool> over = false;
  std::thread writer([&] {
    for (int64_t k = 0; k < 300'000; ++k)
      record.Enter(k % 2 == 0 ? Activity::kReading : Activity::kComputing, k, 3 * k);
    over = true;
  });
  int64_t torn = 0, last_step = 0, last_since = 0;
  while (!over) {
    const ActivityRecord::State state = record.Read();
    if (state.activity == Activity::kNone) continue;
    torn += state.micro_step != 3 * state.step || state.step < last_step || state.since_ns < last_since ||
            state.activity != (state.step % 2 == 0 ? Activity::kReading : Activity::kComputing);
    last_step = state.step;
    last_since = state.since_ns;
  }
  writer.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(record.Read().step, 299'999);
}

TEST(ActivityTest, EachHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Activity::kEnding); ++i) names.insert(Name(static_cast<Activity>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(Activity::kEnding) + 1);
}

}  // namespace
}  // namespace ft
