// NCCL's communicators on fake GPUs when ranks stay away, connections break or there is not what it takes.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "runtime/base/first_failure.h"
#include "runtime/collective/nccl/create_nccl.h"
#include "runtime/collective/nccl/nccl_api.h"
#include "runtime/collective/testing/test_world.h"
#include "test/doubles/nccl/gpu_ranks.h"

namespace ft {
namespace {

using testing::FakeGpus;
using testing::OnGpus;
using testing::StreamRank;
using testing::TestWorld;
using testing::Waiting;

void ExpectWords(const absl::Status& status, const std::vector<std::string>& words) {
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  for (const std::string& word : words)
    EXPECT_NE(status.message().find(word), std::string::npos) << status << " without " << word;
}

class TroubleTest : public ::testing::TestWithParam<bool> {};

TEST_P(TroubleTest, ATimeOutOnTheDeviceNamesInstructionSequenceAndMissingRank) {
  FakeGpus gpus;
  TestWorld(4).RunThreads([&](const Rendezvous& rendezvous) {
    CommunicatorOptions options = OnGpus(gpus, GetParam());
    options.timeout = absl::Seconds(2);
    auto communicators = Waiting(CreateCommunicators(rendezvous, 1, options).value());
    std::vector<float> x(9000);
    const auto reduce = [&](const char* name) {
      return communicators[0]->AllReduce(x.data(), x.size(), DType::kF32, {name, 1});
    };
    ASSERT_TRUE(reduce("all_reduce h.0").ok());
    ASSERT_TRUE(reduce("all_reduce h.1").ok());
    if (rendezvous.rank() == 2) {
      absl::SleepFor(absl::Seconds(4));  // never comes
      return;
    }
    // Not all at once: the last one says that it waits before the first one's time is over.
    absl::SleepFor(absl::Milliseconds(200) * rendezvous.rank());
    const absl::Status status = reduce("all_reduce h.2");
    ExpectWords(status, {"timed out after 2s in 'all_reduce h.2' #3 waiting for rank 2 (pid "});
    for (const char* other : {"rank 0", "rank 1", "rank 3"})
      EXPECT_EQ(status.message().find(other), std::string::npos) << status;
    EXPECT_EQ(reduce("all_reduce h.3"), status) << "later calls fail with the same";
  });
}

TEST_P(TroubleTest, ATimeOutWhileConnectionsAreMadeNamesThemToo) {
  FakeGpus gpus;
  TestWorld(3).RunThreads([&](const Rendezvous& rendezvous) {
    CommunicatorOptions options = OnGpus(gpus, GetParam());
    options.timeout = absl::Seconds(1);
    auto communicators = Waiting(CreateCommunicators(rendezvous, 1, options).value());
    if (rendezvous.rank() == 0) {
      absl::SleepFor(absl::Seconds(2));
      return;
    }
    float x = 0;
    ExpectWords(communicators[0]->AllReduce(&x, 1, DType::kF32, {"loss", 1}),
                {"timed out after 1s in 'loss' #1 waiting for rank 0 (pid "});
  });
}

INSTANTIATE_TEST_SUITE_P(Modes, TroubleTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "deterministic" : "fast"; });

// Communicators of two axes share a stream. Only the one that hangs says so, and knows who is missing.
TEST(TroubleOnAStreamTest, TheCommunicatorThatHangsIsTheOneThatTells) {
  FakeGpus gpus;
  TestWorld(4).RunThreads([&](const Rendezvous& rendezvous) {
    CommunicatorOptions options = OnGpus(gpus, false);
    options.timeout = absl::Seconds(1);
    const int me = rendezvous.rank();
    const std::vector<CommunicatorGroup> groups = {{{me / 2 * 2, me / 2 * 2 + 1}}, {{me % 2, me % 2 + 2}}};
    StreamRank rank(CreateCommunicators(rendezvous, groups, options).value());
    testing::Marks marks;
    FirstFailure failures[2];
    for (int i = 0; i < 2; ++i)
      rank.communicators[static_cast<size_t>(i)]->Supervise(
          [&] { return marks.Get(); },
          [&, i](const absl::Status& status) { failures[i].Set(status).IgnoreError(); });
    std::vector<float> x(100);
    const CommandInfo info[2] = {{.title = "reduce_scatter h.1", .category = "backward"},
                                 {.title = "all_reduce h.1", .category = "backward"}};
    const auto reduce = [&](int i) {
      marks.Begin(rank.stream, &info[i]);
      EXPECT_TRUE(rank.communicators[static_cast<size_t>(i)]
                      ->AllReduce(x.data(), x.size(), DType::kF32, {info[i].title.c_str(), 1})
                      .ok());
      marks.End(rank.stream);
    };
    reduce(0);
    reduce(1);
    ASSERT_EQ(rank.stream.Finish(), 0);
    if (me != 3) {
      reduce(0);
      reduce(1);
      rank.stream.Finish();
    }
    absl::SleepFor(absl::Seconds(2));
    const absl::Status shard = failures[0].status(), replica = failures[1].status();
    if (me == 2) {
      ExpectWords(shard, {"'reduce_scatter h.1' #3 waiting for rank 3 (pid "});
    } else if (me == 1) {
      ExpectWords(replica, {"'all_reduce h.1' #4 waiting for rank 3 (pid "});
      EXPECT_TRUE(shard.ok()) << shard;
    }
    if (me == 0) {
      EXPECT_TRUE(shard.ok()) << shard;
    }
    for (auto& comm : rank.communicators) comm->Detach();
  });
}

TEST(TroubleOnAStreamTest, AnErrorOfNcclIsToldWithItsPlace) {
  FakeGpus gpus;
  TestWorld(2).RunThreads([&](const Rendezvous& rendezvous) {
    auto communicators = Waiting(CreateCommunicators(rendezvous, 1, OnGpus(gpus, false)).value());
    std::vector<float> x(100);
    ASSERT_TRUE(communicators[0]->AllReduce(x.data(), 100, DType::kF32, {"reduce h.4", 1}).ok());
    if (rendezvous.rank() == 1) {
      absl::SleepFor(absl::Milliseconds(200));
      gpus.BreakRank(0, nccl::kRemoteError);
      absl::SleepFor(absl::Seconds(1));
      return;
    }
    const absl::Status status = communicators[0]->AllReduce(x.data(), 100, DType::kF32, {"reduce h.5", 2});
    ExpectWords(status, {"remote process exited", "emulated, with two lines", "'reduce h.5' #2"});
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  });
}

TEST(TroubleOnAStreamTest, AbortEndsWhatIsOnTheDeviceAndStays) {
  FakeGpus gpus;
  TestWorld(3).RunThreads([&](const Rendezvous& rendezvous) {
    auto communicators = Waiting(CreateCommunicators(rendezvous, 1, OnGpus(gpus, true)).value());
    ASSERT_TRUE(communicators[0]->Barrier({"all", 1}).ok());
    if (rendezvous.rank() == 2) {
      absl::SleepFor(absl::Milliseconds(500));
      return;
    }
    std::thread waker([&] {
      absl::SleepFor(absl::Milliseconds(50));
      communicators[0]->Abort(absl::UnavailableError("rank 2 was lost"));
    });
    EXPECT_EQ(communicators[0]->Barrier({"never", 2}).message(), "rank 2 was lost");
    waker.join();
    float x = 0;
    EXPECT_EQ(communicators[0]->AllReduce(&x, 1, DType::kF32, {"later", 3}).message(), "rank 2 was lost");
  });
  EXPECT_EQ(gpus.aborts(), 3) << "each rank's, and the third's because nobody comes to its end";
}

// As executors have it: the first communicator that fails ends the others.
class SupervisedRank {
 public:
  explicit SupervisedRank(testing::Communicators made) : rank_(std::move(made)) {
    for (auto& comm : rank_.communicators)
      comm->Supervise([this] { return marks_.Get(); },
                      [this](const absl::Status& status) {
                        for (auto& each : rank_.communicators) each->Abort(status);
                      });
  }

  void Reduce(size_t communicator) {
    marks_.Begin(stream(), &info_);
    EXPECT_TRUE(rank_.communicators[communicator]
                    ->AllReduce(x_.data(), x_.size(), DType::kF32, {info_.title.c_str(), 1})
                    .ok());
    marks_.End(stream());
  }
  // How long the end takes, in the order of executors.
  absl::Duration End(bool forget_recordings) {
    const absl::Time begin = absl::Now();
    for (auto& comm : rank_.communicators) comm->Detach();
    if (forget_recordings) stream().Forget();
    rank_.communicators.clear();
    return absl::Now() - begin;
  }
  testing::HostStream& stream() { return rank_.stream; }

 private:
  StreamRank rank_;
  testing::Marks marks_;
  const CommandInfo info_ = {.title = "all_reduce h.1", .category = "backward"};
  std::vector<float> x_ = std::vector<float>(100);
};

// NCCL gives up a communicator when the stream has passed all that it put there. Here that is behind the work
// of the other one, which hangs as well.
TEST(AbortTest, CommunicatorsOfAStreamDoNotWaitForEachOther) {
  FakeGpus gpus;
  TestWorld(2).RunThreads([&](const Rendezvous& rendezvous) {
    CommunicatorOptions options = OnGpus(gpus, false);
    options.timeout = absl::Seconds(1);
    SupervisedRank rank(CreateCommunicators(rendezvous, 2, options).value());
    for (const size_t i : {0, 1}) rank.Reduce(i);
    EXPECT_EQ(rank.stream().Finish(), 0);
    if (rendezvous.rank() == 0) {
      for (const size_t i : {0, 1, 0}) rank.Reduce(i);
      EXPECT_EQ(rank.stream().Finish(), 0);
    } else {
      absl::SleepFor(absl::Seconds(2));
    }
    EXPECT_LT(rank.End(false), absl::Seconds(5));
  });
}

// Nor before the recordings are gone that have work of it, which are destroyed by who waits for the stream.
class RecordingThatHangsTest : public ::testing::TestWithParam<bool> {};

TEST_P(RecordingThatHangsTest, EndsAndHoldsUpNobody) {
  FakeGpus gpus;
  const bool forget = GetParam();
  TestWorld(2).RunThreads([&](const Rendezvous& rendezvous) {
    CommunicatorOptions options = OnGpus(gpus, false);
    options.timeout = absl::Seconds(1);
    SupervisedRank rank(CreateCommunicators(rendezvous, 1, options).value());
    rank.Reduce(0);
    EXPECT_EQ(rank.stream().Finish(), 0);
    rank.stream().Capture();
    rank.Reduce(0);
    if (rendezvous.rank() == 0) {
      rank.stream().Replay();
      EXPECT_EQ(rank.stream().Finish(), 0);
      EXPECT_LT(rank.End(forget), forget ? absl::Seconds(1) : absl::Seconds(10));
    } else {
      absl::SleepFor(absl::Seconds(2));
      rank.End(true);
    }
  });
  while (gpus.communicators() > 0) absl::SleepFor(absl::Milliseconds(10));
}

INSTANTIATE_TEST_SUITE_P(Recordings, RecordingThatHangsTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "gone" : "kept"; });

TEST(CreationTest, RanksThatDoNotComeAreNamed) {
  FakeGpus gpus;
  TestWorld(4).RunThreads([&](const Rendezvous& rendezvous) {
    if (rendezvous.rank() == 1 || rendezvous.rank() == 3) return;
    const nccl::NcclOptions options{.cuda = gpus.Side(),
                                    .store = rendezvous.store(),
                                    .rank = rendezvous.rank(),
                                    .members = {"rank 0 (a)", "rank 1 (b)", "rank 2 (c)", "rank 3 (d)"},
                                    .connect_timeout = absl::Milliseconds(700),
                                    .interrupted = {}};
    ExpectWords(nccl::CreateNcclCommunicators({{{0, 1, 2, 3}}}, options).status(),
                {"timed out after 700ms", "waiting for rank 1 (b), rank 3 (d)"});
  });
  EXPECT_EQ(gpus.communicators(), 0);
}

TEST(CreationTest, AnInterruptionEndsIt) {
  FakeGpus gpus;
  TestWorld(2).RunThreads([&](const Rendezvous& rendezvous) {
    if (rendezvous.rank() == 1) return;
    CommunicatorOptions options = OnGpus(gpus, false);
    options.interrupted = [] { return absl::UnavailableError("rank 1 was lost"); };
    EXPECT_EQ(CreateCommunicators(rendezvous, 1, options).status().message(), "rank 1 was lost");
  });
}

TEST(CreationTest, TooLittleMemoryForStaging) {
  FakeGpus gpus;
  gpus.driver().Limit(1 << 20);
  TestWorld(2).RunThreads([&](const Rendezvous& rendezvous) {
    EXPECT_TRUE(absl::IsResourceExhausted(CreateCommunicators(rendezvous, 1, OnGpus(gpus, true)).status()));
  });
  EXPECT_EQ(gpus.communicators(), 0);
}

TEST(CreationTest, BackendsAreForTheirDevices) {
  TestWorld(2).RunThreads([](const Rendezvous& rendezvous) {
    using enum CollectiveBackend;
    EXPECT_EQ(ResolveBackend(rendezvous, kAuto, true).value(), kNccl);
    EXPECT_EQ(ResolveBackend(rendezvous, kNccl, true).value(), kNccl);
    EXPECT_EQ(ResolveBackend(rendezvous, kAuto, false).value(), kShm);
    for (const auto backend : {kShm, kGloo, kLocal})
      EXPECT_TRUE(absl::IsFailedPrecondition(ResolveBackend(rendezvous, backend, true).status()));
    EXPECT_TRUE(absl::IsFailedPrecondition(ResolveBackend(rendezvous, kNccl, false).status()));
  });
}

// Here or not: either it is found and new enough, or one line says which file is wanted.
TEST(LibraryTest, IsFoundOrMissedInOneLine) {
  const auto library = nccl::LoadNccl();
  if (library.ok()) {
    int version = 0;
    EXPECT_EQ((*library)->GetVersion(&version), nccl::kSuccess);
    EXPECT_GE(version, nccl::kOldestVersion);
    EXPECT_STRNE((*library)->GetErrorString(nccl::kRemoteError), "");
    return;
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(library.status())) << library.status();
  EXPECT_NE(library.status().message().find("libnccl.so.2"), std::string::npos) << library.status();
  EXPECT_EQ(library.status().message().find('\n'), std::string::npos);
}

TEST(LibraryTest, VersionsAreWrittenAsNvidiaWritesThem) {
  EXPECT_EQ(nccl::VersionText(22809), "2.28.9");
  EXPECT_EQ(nccl::VersionText(21900), "2.19.0");
}

}  // namespace
}  // namespace ft
