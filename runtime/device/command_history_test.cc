#include "runtime/device/command_history.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace ft {
namespace {

TEST(CommandHistoryTest, KeepsTheLastOnesAndTheOneThatRuns) {
  const std::vector<CommandInfo> infos(300);
  CommandHistory history;
  EXPECT_FALSE(history.Read().running.has_value());
  EXPECT_TRUE(history.Read().recent.empty());
  for (size_t i = 0; i < infos.size(); ++i) {
    history.Begin(infos[i], static_cast<int64_t>(10 * i + 1));
    const CommandHistory::Snapshot in = history.Read();
    ASSERT_TRUE(in.running.has_value());
    EXPECT_EQ(in.running->info, &infos[i]);
    EXPECT_EQ(in.running->begin_ns, static_cast<int64_t>(10 * i + 1));
    EXPECT_EQ(in.finished, i);
    history.End(static_cast<int64_t>(10 * i + 4));
    const CommandHistory::Snapshot after = history.Read();
    EXPECT_FALSE(after.running.has_value());
    ASSERT_EQ(after.recent.size(), std::min(i + 1, CommandHistory::kRecent));
    for (size_t k = 0; k < after.recent.size(); ++k) {
      const size_t number = i + 1 - after.recent.size() + k;
      EXPECT_EQ(after.recent[k].info, &infos[number]);
      EXPECT_EQ(after.recent[k].begin_ns, static_cast<int64_t>(10 * number + 1));
      EXPECT_EQ(after.recent[k].end_ns, static_cast<int64_t>(10 * number + 4));
    }
  }
}

// Command k begins at 10 k and ends at 10 k + 5, and says which it is by where its info lies: an entry that
// mixes two commands, or is out of order, is seen.
TEST(CommandHistoryTest, IsNeverSeenHalfWritten) {
  constexpr int64_t kCommands = 3'000'000;
  const std::vector<CommandInfo> infos(1009);
  CommandHistory history;
  std::atomic<bool> over = false;
  std::thread stream([&] {
    for (int64_t k = 0; k < kCommands; ++k) {
      history.Begin(infos[static_cast<size_t>(k) % infos.size()], 10 * k);
      history.End(10 * k + 5);
    }
    over = true;
  });
  const auto is_whole = [&](const CommandHistory::Entry& entry, int64_t end) {
    return entry.begin_ns % 10 == 0 && entry.end_ns == end &&
           entry.info == &infos[static_cast<size_t>(entry.begin_ns / 10) % infos.size()];
  };
  int64_t torn = 0, reads = 0, seen = 0;
  do {
    const CommandHistory::Snapshot snapshot = history.Read();
    ++reads;
    seen += static_cast<int64_t>(snapshot.recent.size());
    int64_t previous = -10;
    for (const CommandHistory::Entry& entry : snapshot.recent) {
      torn += !is_whole(entry, entry.begin_ns + 5);
      torn += previous >= 0 && entry.begin_ns != previous + 10;
      previous = entry.begin_ns;
    }
    if (snapshot.running.has_value()) torn += !is_whole(*snapshot.running, 0);
  } while (!over);
  stream.join();
  EXPECT_EQ(torn, 0);
  EXPECT_GT(reads, 0);
  const CommandHistory::Snapshot last = history.Read();
  EXPECT_EQ(last.finished, static_cast<uint64_t>(kCommands));
  ASSERT_EQ(last.recent.size(), CommandHistory::kRecent);
  EXPECT_EQ(last.recent.back().end_ns, 10 * (kCommands - 1) + 5);
}

}  // namespace
}  // namespace ft
