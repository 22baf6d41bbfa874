#include "runtime/collective/liveness/wishes.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "runtime/collective/liveness/peer_monitor.h"
#include "runtime/collective/liveness/testing/watched_rank.h"
#include "runtime/collective/missing_ranks.h"
#include "runtime/collective/testing/test_world.h"

namespace ft {
namespace {

using testing::ForkedRank;
using testing::StartWatchedRank;
using testing::TestWorld;

// The collectives of a training step, as far as they matter here: nobody ends a step that not all have begun.
class Lockstep {
 public:
  explicit Lockstep(int ranks) : begun_(static_cast<size_t>(ranks)) {}

  void Step(int rank, int64_t step) {
    absl::MutexLock lock(&mutex_);
    begun_[static_cast<size_t>(rank)] = step;
    const auto all = [&] {
      return std::all_of(begun_.begin(), begun_.end(), [&](int64_t begun) { return begun >= step; });
    };
    mutex_.Await(absl::Condition(&all));
  }

 private:
  absl::Mutex mutex_;
  std::vector<int64_t> begun_;
};

// Orders by step, for each rank.
using Orders = std::map<int64_t, Order>;

struct Trial {
  int ranks = 3;
  int64_t steps = 200;
  std::function<void(int rank, int64_t step, Wishes& wishes)> in_step = [](int, int64_t, Wishes&) {};
  std::function<void(int rank, int64_t step, Wishes& wishes)> after_step = [](int, int64_t, Wishes&) {};
};

// Trains until an order ends it; returns what each rank was ordered, and the steps it took.
std::vector<Orders> Train(const Trial& trial, std::vector<int64_t>* taken = nullptr) {
  Lockstep lockstep(trial.ranks);
  std::vector<Orders> orders(static_cast<size_t>(trial.ranks));
  std::vector<int64_t> steps(orders.size());
  TestWorld(trial.ranks).RunThreads([&](const Rendezvous& rendezvous) {
    auto monitor = PeerMonitor::Start(rendezvous).value();
    const int rank = rendezvous.rank();
    for (int64_t step = 1; step <= trial.steps; ++step) {
      trial.in_step(rank, step, monitor->wishes());
      lockstep.Step(rank, step);
      trial.after_step(rank, step, monitor->wishes());
      const auto order = monitor->wishes().AtBoundary(step);
      ASSERT_TRUE(order.ok()) << order.status();
      steps[static_cast<size_t>(rank)] = step;
      if (*order != Order::kNone) orders[static_cast<size_t>(rank)][step] = *order;
      if (*order == Order::kSaveAndEnd) break;
    }
    EXPECT_TRUE(monitor->Goodbye().ok());
  });
  for (size_t rank = 1; rank < orders.size(); ++rank) {
    EXPECT_EQ(orders[rank], orders[0]) << "rank " << rank;
    EXPECT_EQ(steps[rank], steps[0]) << "rank " << rank;
  }
  if (taken != nullptr) *taken = steps;
  return orders;
}

TEST(WishesTest, WithoutAWishThereIsNoOrder) { EXPECT_TRUE(Train({})[0].empty()); }

TEST(WishesTest, ARanksWishIsEveryonesOrder) {
  for (int wishing = 0; wishing < 3; ++wishing) {
    Trial trial;
    trial.in_step = [&](int rank, int64_t step, Wishes& wishes) {
      if (rank == wishing && step == 50) {
        EXPECT_TRUE(wishes.Request(Wish::kSave));
      }
      if (step >= 50 && step < 150) absl::SleepFor(absl::Microseconds(100));  // for it to travel
    };
    const Orders orders = Train(trial)[0];
    ASSERT_EQ(orders.size(), 1u);
    EXPECT_GE(orders.begin()->first, 50) << "rank 0 may not have ended step 49 by then";
    EXPECT_EQ(orders.begin()->second, Order::kSave);
  }
}

TEST(WishesTest, AWishToEndEndsAllAtOneStep) {
  std::vector<int64_t> steps;
  Trial trial;
  trial.steps = 1'000'000;
  trial.in_step = [](int rank, int64_t step, Wishes& wishes) {
    if (rank == 2 && step == 20) wishes.Request(Wish::kSaveAndEnd);
  };
  const Orders orders = Train(trial, &steps)[0];
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders.begin()->second, Order::kSaveAndEnd);
  EXPECT_EQ(orders.begin()->first, steps[0]);
}

// Rank 0's own wish, made between its steps, is ordered for the end of the very next one.
TEST(WishesTest, TheClockOfRank0IsExact) {
  Trial trial;
  trial.after_step = [](int rank, int64_t step, Wishes& wishes) {
    if (rank == 0 && step % 40 == 0) wishes.Request(Wish::kSave);
  };
  const Orders expected = {{41, Order::kSave}, {81, Order::kSave}, {121, Order::kSave}, {161, Order::kSave}};
  EXPECT_EQ(Train(trial)[0], expected);
}

// In two steps running, of which the second begins on rank 0 while others are still in the first.
TEST(WishesTest, OrdersMayFollowEachOther) {
  Trial trial;
  trial.ranks = 4;
  trial.steps = 50;
  trial.after_step = [](int rank, int64_t step, Wishes& wishes) {
    if (rank == 0 && step >= 10 && step < 15) wishes.Request(Wish::kSave);
    if (rank > 0) absl::SleepFor(absl::Milliseconds(1));
  };
  // The wish after step 11 is fulfilled by the save that is ordered for step 11 only if that is still to
  // come.
  const Orders orders = Train(trial)[0];
  EXPECT_EQ(orders.count(11), 1u);
  EXPECT_GE(orders.size(), 2u);
  EXPECT_LE(orders.rbegin()->first, 16);
}

// What wishes come to: a save ordered for a step to come is the one for all wishes before it; the end wins.
TEST(WishesTest, SeveralWishesMerge) {
  Trial trial;
  trial.after_step = [](int rank, int64_t step, Wishes& wishes) {
    if (rank != 0 || step != 10) return;
    for (int i = 0; i < 5; ++i) wishes.Request(Wish::kSave);
    wishes.Request(Wish::kSaveAndEnd);
    wishes.Request(Wish::kSave);
  };
  EXPECT_EQ(Train(trial)[0], (Orders{{11, Order::kSaveAndEnd}}));
  trial.steps = 30;
  trial.in_step = [](int rank, int64_t step, Wishes& wishes) {
    if (rank == 0 && step == 11) wishes.Request(Wish::kSave);  // ordered already for the end of this step
  };
  trial.after_step = [](int rank, int64_t step, Wishes& wishes) {
    if (rank == 0 && step == 10) wishes.Request(Wish::kSave);
  };
  EXPECT_EQ(Train(trial)[0], (Orders{{11, Order::kSave}}));
}

TEST(WishesTest, AllRanksWishAtOnceFromOtherThreads) {
  for (int round = 0; round < 20; ++round) {
    Trial trial;
    trial.ranks = 4;
    trial.steps = 1'000'000;
    std::vector<std::thread> signals(4);
    trial.in_step = [&](int rank, int64_t step, Wishes& wishes) {
      if (step != 5) return;
      signals[static_cast<size_t>(rank)] = std::thread([&wishes, rank] {
        wishes.Request(rank % 2 == 0 ? Wish::kSave : Wish::kSaveAndEnd);
        wishes.Request(Wish::kSaveAndEnd);
      });
    };
    trial.after_step = [&](int rank, int64_t step, Wishes&) {
      if (step == 5) signals[static_cast<size_t>(rank)].join();
    };
    const Orders orders = Train(trial)[0];
    ASSERT_FALSE(orders.empty());
    EXPECT_EQ(orders.rbegin()->second, Order::kSaveAndEnd);
    EXPECT_EQ(std::count_if(orders.begin(), orders.end(),
                            [](const auto& order) { return order.second == Order::kSaveAndEnd; }),
              1);
  }
}

// Whoever is slow, and wherever: rank 0 itself, another one, all by chance.
TEST(WishesTest, SlowRanksKnowInTime) {
  for (int slow = 0; slow < 4; ++slow) {
    Trial trial;
    trial.steps = 400;
    const auto dawdle = [slow](int rank, int64_t step, Wishes& wishes) {
      thread_local std::minstd_rand random(static_cast<unsigned>(rank + 1));
      if ((rank == slow || slow == 3) && random() % 8 == 0)
        absl::SleepFor(absl::Microseconds(random() % 1500));
      if (random() % 16 == 0) wishes.Request(Wish::kSave);
      if (step == 390) wishes.Request(Wish::kSaveAndEnd);
    };
    trial.in_step = trial.after_step = dawdle;
    EXPECT_GT(Train(trial)[0].size(), 5u);
  }
}

TEST(WishesTest, AnOrderForAStepThatIsNotTakenIsVoid) {
  for (const bool end : {false, true}) {
    for (const int wishing : {0, 2}) {
      std::vector<int64_t> steps;
      Trial trial;
      trial.steps = 10;
      trial.after_step = [&](int rank, int64_t step, Wishes& wishes) {
        if (rank == wishing && step == 10) wishes.Request(end ? Wish::kSaveAndEnd : Wish::kSave);
        // Others may be gone before rank 0 orders anything.
        if (rank == 0 && step == 10) absl::SleepFor(absl::Milliseconds(50));
      };
      EXPECT_TRUE(Train(trial, &steps)[0].empty());
      EXPECT_EQ(steps[0], 10);
    }
  }
}

TEST(WishesTest, AWishInTheLastStepButOneIsKept) {
  Trial trial;
  trial.steps = 10;
  trial.after_step = [](int rank, int64_t step, Wishes& wishes) {
    if (rank == 0 && step == 9) wishes.Request(Wish::kSaveAndEnd);
  };
  EXPECT_EQ(Train(trial)[0], (Orders{{10, Order::kSaveAndEnd}}));
}

TEST(WishesTest, OneRankObeysItselfAtOnce) {
  auto rendezvous = Rendezvous::Join(LaunchEnvironment{}, {}).value();
  auto monitor = PeerMonitor::Start(*rendezvous).value();
  Wishes& wishes = monitor->wishes();
  EXPECT_EQ(wishes.AtBoundary(1).value(), Order::kNone);
  EXPECT_TRUE(wishes.Request(Wish::kSave));
  EXPECT_EQ(wishes.AtBoundary(2).value(), Order::kSave);
  EXPECT_EQ(wishes.AtBoundary(3).value(), Order::kNone);
  wishes.Request(Wish::kSaveAndEnd);
  wishes.Request(Wish::kSave);
  EXPECT_EQ(wishes.AtBoundary(4).value(), Order::kSaveAndEnd);
  EXPECT_FALSE(wishes.Request(Wish::kNone));
}

TEST(WishesTest, AfterALossNobodyWishes) {
  TestWorld(3).RunThreads([](const Rendezvous& rendezvous) {
    auto monitor = PeerMonitor::Start(rendezvous).value();
    if (rendezvous.rank() == 2) {
      absl::SleepFor(absl::Milliseconds(50));
      monitor->Fail("gone");
      return;
    }
    if (rendezvous.rank() == 0) {
      EXPECT_TRUE(monitor->wishes().Request(Wish::kSaveAndEnd));
    }
    EXPECT_FALSE(monitor->Explain(absl::UnavailableError("?")).message().empty());
    EXPECT_FALSE(monitor->wishes().Request(Wish::kSaveAndEnd));
    if (rendezvous.rank() == 0) {
      EXPECT_EQ(monitor->wishes().AtBoundary(7).status(), absl::UnavailableError("rank 2 failed: gone"));
    }
  });
}

// A process that is stopped does not answer: it is waited for, as long as was said.
TEST(WishesTest, AStoppedRankIsNamedAfterTheTime) {
  TestWorld world(2);
  const ForkedRank other = StartWatchedRank(world, 1);
  auto rendezvous = Rendezvous::Join(world.EnvironmentOf(0), TestWorld::Options()).value();
  auto monitor = PeerMonitor::Start(*rendezvous).value();
  EXPECT_EQ(other.ReadLine(), "ready");
  other.Stop();
  monitor->wishes().set_timeout(absl::Milliseconds(300));
  monitor->wishes().Request(Wish::kSave);
  const absl::Status status = monitor->wishes().AtBoundary(3).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(std::string(status.message()),
            "timed out after 300ms in the order to save after step 4, waiting for rank 1");
  EXPECT_EQ(MissingRanks(status), std::vector<int>{1});
}

// Lost between the order and its answer: rank 0 waits no longer, and says who it was.
TEST(WishesTest, ARankThatIsLostBeforeItAnswersIsNamed) {
  TestWorld world(3);
  std::vector<ForkedRank> others;
  for (int rank = 1; rank < 3; ++rank) others.push_back(StartWatchedRank(world, rank));
  auto rendezvous = Rendezvous::Join(world.EnvironmentOf(0), TestWorld::Options()).value();
  auto monitor = PeerMonitor::Start(*rendezvous).value();
  for (const ForkedRank& other : others) EXPECT_EQ(other.ReadLine(), "ready");
  others[1].Stop();
  std::thread killer([&] {
    absl::SleepFor(absl::Milliseconds(200));
    kill(others[1].pid(), SIGKILL);
  });
  monitor->wishes().Request(Wish::kSaveAndEnd);
  const absl::Status status = monitor->wishes().AtBoundary(3).status();
  killer.join();
  EXPECT_EQ(status.message().find("rank 2 was lost"), 0u) << status;
}

}  // namespace
}  // namespace ft
