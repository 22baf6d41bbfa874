// Signals to some ranks of a run that writes checkpoints: every rank saves after the same step. The run is a
// stand-in: steps are barriers, a checkpoint is a line.
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "runtime/base/exit_status.h"
#include "runtime/collective/create.h"
#include "runtime/collective/liveness/peer_monitor.h"
#include "runtime/collective/testing/test_world.h"
#include "tools/ftexec/process_guard.h"

namespace ft {
namespace {

using testing::ForkedRank;
using testing::TestWorld;
using testing::WriteLine;

// What train.cc and main.cc do of a run, in a process of its own; returns its exit status. `save` is called
// for each checkpoint.
int RunRank(const TestWorld& world, int rank, int out, absl::Duration save) {
  const auto guard = *ProcessGuard::Start();
  auto rendezvous = Rendezvous::Join(world.EnvironmentOf(rank), TestWorld::Options()).value();
  auto monitor = PeerMonitor::Start(*rendezvous).value();
  const auto communicators = *CreateCommunicators(*rendezvous, 1, {});
  guard->set_grace(absl::Seconds(10));
  guard->OnCancel([&](const absl::Status& reason) {
    monitor->Cancel(reason);
    communicators[0]->Abort(reason);
  });
  guard->OnWish([&](Wish wish) { return monitor->wishes().Request(wish); });
  monitor->OnLoss([&](const absl::Status& reason) { guard->PeerLost(reason); });
  absl::Status status;
  for (int64_t step = 1; status.ok() && !guard->ended_as_wished(); ++step) {
    if (step == 3) WriteLine(out, "trains");
    status = communicators[0]->Barrier({"step", static_cast<uint64_t>(step)});
    if (!status.ok()) break;
    const auto order = monitor->wishes().AtBoundary(step);
    status = order.status();
    if (!order.ok() || *order == Order::kNone) continue;
    absl::SleepFor(save);
    WriteLine(out, "saved " + std::to_string(step));
    if (*order == Order::kSaveAndEnd) guard->EndedAsWished();
  }
  if (!status.ok()) monitor->Fail(std::string(monitor->Explain(status).message()));
  if (status.ok()) status = monitor->Goodbye();
  guard->OnWish({});
  guard->OnCancel({});
  monitor->OnLoss({});
  guard->RaiseAgain();
  return status.ok() ? kExitEndedAsWished : ExitStatus(status);
}

std::vector<ForkedRank> Start(const TestWorld& world, int size, absl::Duration save = absl::ZeroDuration()) {
  std::vector<ForkedRank> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.emplace_back([&world, rank, save](int out) { return RunRank(world, rank, out, save); });
  for (const ForkedRank& rank : ranks) EXPECT_EQ(rank.ReadLine(), "trains");
  return ranks;
}

void ExpectAllSavedAndEnded(std::vector<ForkedRank>& ranks) {
  std::vector<std::string> last;
  for (ForkedRank& rank : ranks) {
    std::string line, next;
    while (!(next = rank.ReadLine()).empty()) line = next;
    last.push_back(line);
    const int status = rank.Wait();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kExitEndedAsWished) << status;
  }
  EXPECT_EQ(last[0].find("saved "), 0u) << last[0];
  for (const std::string& line : last) EXPECT_EQ(line, last[0]);
}

TEST(SaveAndEndTest, OneRankOrAllAreTold) {
  for (const int number : {SIGTERM, SIGUSR1}) {
    for (const int told : {0, 2, -1}) {
      const TestWorld world(3);
      // A checkpoint takes longer than a cancelled run may take.
      auto ranks = Start(world, 3, absl::Seconds(told < 0 ? 2.5 : 0));
      for (int rank = 0; rank < 3; ++rank) {
        if (told < 0 || rank == told) kill(ranks[static_cast<size_t>(rank)].pid(), number);
      }
      ExpectAllSavedAndEnded(ranks);
    }
  }
}

TEST(SaveAndEndTest, Sigusr2SavesAndGoesOn) {
  const TestWorld world(3);
  auto ranks = Start(world, 3);
  std::string saved;
  for (const int told : {1, 0, 2}) {
    kill(ranks[static_cast<size_t>(told)].pid(), SIGUSR2);
    const std::string line = ranks[0].ReadLine();
    EXPECT_NE(line, saved);
    saved = line;
    EXPECT_EQ(saved.find("saved "), 0u) << saved;
    for (const int rank : {1, 2}) EXPECT_EQ(ranks[static_cast<size_t>(rank)].ReadLine(), saved);
  }
  kill(ranks[1].pid(), SIGTERM);
  ExpectAllSavedAndEnded(ranks);
}

// The wish cannot be fulfilled any more, and nobody waits for it.
TEST(SaveAndEndTest, ARankIsLostBeforeItKnows) {
  const TestWorld world(3);
  auto ranks = Start(world, 3);
  ranks[2].Stop();
  kill(ranks[1].pid(), SIGTERM);
  absl::SleepFor(absl::Milliseconds(200));
  kill(ranks[2].pid(), SIGKILL);
  const absl::Time killed = absl::Now();
  for (const size_t rank : {0, 1}) {
    const int status = ranks[rank].Wait();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kExitPeerLost) << status;
    EXPECT_EQ(ranks[rank].ReadLine(), "") << "nothing is saved";
  }
  EXPECT_LT(absl::Now() - killed, absl::Seconds(6));
}

}  // namespace
}  // namespace ft
