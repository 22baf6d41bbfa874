#include "runtime/base/first_failure.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace ft {
namespace {

TEST(FirstFailureTest, TheFirstReasonHolds) {
  FirstFailure failure;
  EXPECT_FALSE(failure.failed());
  EXPECT_TRUE(failure.status().ok());
  EXPECT_EQ(failure.Set(absl::UnavailableError("rank 2 was lost")).message(), "rank 2 was lost");
  EXPECT_EQ(failure.Set(absl::InternalError("a consequence")).message(), "rank 2 was lost");
  EXPECT_TRUE(failure.failed());
  EXPECT_EQ(failure.status(), absl::UnavailableError("rank 2 was lost"));
}

TEST(FirstFailureTest, AllThreadsHearTheSameReason) {
  FirstFailure failure;
  std::vector<std::string> heard(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < heard.size(); ++i) {
    threads.emplace_back([&failure, &heard, i] {
      heard[i] = std::string(failure.Set(absl::InternalError(std::to_string(i))).message());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& reason : heard) EXPECT_EQ(reason, failure.status().message());
}

}  // namespace
}  // namespace ft
