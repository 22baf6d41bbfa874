// What happens in every step must not touch the heap: counts the calls of operator new around it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/testing/temp_folder.h"
#include "runtime/metrics/jsonl.h"
#include "runtime/metrics/progress.h"
#include "runtime/metrics/trace.h"
#include "runtime/metrics/training_events.h"

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace ft {
namespace {

double now = 0;
double Clock() { return now += 10; }

// Numbers that are hard to print, among others.
constexpr double kValues[] = {
    0,    1.0 / 3, 1e300,   std::numeric_limits<double>::denorm_min(), -std::numeric_limits<double>::max(),
    -0.0, NAN,     INFINITY};

TEST(NoAllocationTest, CountsAtAll) {
  const int64_t before = allocations;
  int* volatile kept = new int;  // volatile: the pair could be optimised away
  delete kept;
  EXPECT_EQ(allocations - before, 1);
}

TEST(NoAllocationTest, MetricsFile) {
  auto file = MetricsFile::Open("/dev/null", MetricsFile::OpenMode::kAppend);
  ASSERT_TRUE(file.ok());
  const std::vector<ExtraMetric> extra = {{"kl", 1e-300}, {"beta", 0.1}};
  const int64_t before = allocations;
  for (double value : kValues)
    ASSERT_TRUE((*file)->Write({1, value, value, value, value, value, 1}, extra).ok());
  ASSERT_TRUE((*file)->WriteEvaluation({.step = 1, .loss = 1.0 / 3, .tokens = 1 << 20}).ok());
  EXPECT_EQ(allocations - before, 0);
}

TEST(NoAllocationTest, TrainingEvents) {
  const TempFolder folder;
  auto file = EventFile::Open(folder.Path("."));
  ASSERT_TRUE(file.ok());
  int warnings = 0;
  TrainingEvents events(*std::move(file), [&](const std::string&) { ++warnings; });
  const int64_t before = allocations;
  for (double value : kValues) {
    events.Write({.step = -1,
                  .loss = value,
                  .loss_scale = value,
                  .host_arena_bytes = 1,
                  .exposed_ms = value,
                  .mfu = value,
                  .utilization = value});
  }
  events.WriteEvaluation({.step = 1, .loss = 1.0 / 3, .tokens = 1 << 20});
  EXPECT_EQ(allocations - before, 0);
  EXPECT_EQ(warnings, 0);
}

TEST(NoAllocationTest, Progress) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Progress progress(ends[1], ProgressMode::kOn, 1000, Clock);
  const int64_t before = allocations;
  for (double value : kValues) progress.Update({1, value, value, value, value, value, 1});
  progress.ShowEvaluation({.step = 1, .loss = 1.0 / 3, .tokens = 1 << 20});
  EXPECT_EQ(allocations - before, 0);
  progress.Finish();
  close(ends[1]);
  char first = 0;
  EXPECT_EQ(read(ends[0], &first, 1), 1);
  EXPECT_EQ(first, '\r');
  close(ends[0]);
}

TEST(NoAllocationTest, Trace) {
  TraceRecorder trace(0);
  trace.AddStream("compute", 3);
  trace.ReserveValues(4);
  const int64_t before = allocations;
  for (int i = 0; i < 5; ++i) trace.Record(0, "op", "kernel", i, i + 1);
  for (double value : kValues) trace.Count("mfu", 1, value);
  EXPECT_EQ(allocations - before, 0);
}

}  // namespace
}  // namespace ft
