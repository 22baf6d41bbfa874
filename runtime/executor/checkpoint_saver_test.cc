// Saving and resuming between ranks that watch each other, with a real plan's state.
#include "runtime/executor/checkpoint_saver.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/backends/cpu/device/cpu_device.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/checkpoint/state/checkpoint_reader.h"
#include "runtime/checkpoint/state/plan_state.h"
#include "runtime/collective/liveness/peer_monitor.h"
#include "runtime/collective/plan_communicators.h"
#include "runtime/collective/testing/test_world.h"
#include "runtime/executor/resume.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/testing/tiny_plan.h"

namespace ft {
namespace {

// One rank of a run whose state is to be saved.
class SavingRank {
 public:
  SavingRank(const proto::Plan& plan, const Rendezvous& rendezvous)
      : plan_(plan),
        rank_(rendezvous.rank()),
        bound_(BindPlan(plan, MeshFor(plan, rendezvous.world_size()).value(), DeviceClass::kCpu).value()),
        state_(StateOfPlan(plan, bound_.mesh).value()),
        device_(Kernels(), {.num_threads = 1}),
        communicators_(CreatePlanCommunicators(rendezvous, plan, bound_.mesh, {}).value()),
        executor_(Executor::Create(plan, bound_, device_, communicators_.table(), rank_).value()),
        source_(plan, state_, *executor_),
        monitor_(PeerMonitor::Start(rendezvous).value()) {}

  int rank() const { return rank_; }
  const StateLayout& state() const { return state_; }
  PeerMonitor& monitor() { return *monitor_; }
  AgreeFunction agree() {
    return [this](std::string_view topic, uint64_t number, std::string payload, auto decide) {
      return monitor_->Agree(topic, number, std::move(payload), decide, absl::Seconds(30));
    };
  }
  std::unique_ptr<CheckpointSaver> Saver(const SaveSettings& settings, CheckpointType type) {
    return CheckpointSaver::Create(FileLayout::Create(state_, type).value(), rank_, settings, device_,
                                   source_, agree())
        .value();
  }
  absl::StatusOr<Resumed> ResumeFrom(const std::string& folder) {
    return Resume({.folder = folder, .fingerprint = "one"}, plan_, state_, *executor_, agree());
  }

  // All of the state that this rank holds becomes `value`.
  void Fill(float value) {
    for (const StateBuffer& buffer : state_.buffers) {
      const StateAtRest at = FindState(plan_, executor_->operands(), buffer);
      const std::vector<float> values(at.elements, value);
      ASSERT_TRUE(executor_->Write(at.data, values.data(), at.elements * sizeof(float)).ok());
    }
  }
  void ExpectAll(float value) {
    for (const StateBuffer& buffer : state_.buffers) {
      const StateAtRest at = FindState(plan_, executor_->operands(), buffer);
      const ElementRange held = state_.HeldBy(buffer, rank_);
      std::vector<float> values(at.elements);
      ASSERT_TRUE(executor_->Read(values.data(), at.data, at.elements * sizeof(float)).ok());
      for (const StateParameter& parameter : state_.parameters) {
        if (parameter.unit != buffer.unit) continue;
        const ElementRange own = Intersect(held, {parameter.offset, parameter.offset + parameter.elements});
        for (uint64_t e = own.begin; e < own.end; ++e)
          ASSERT_EQ(values[e - at.begin], value) << parameter.name;
      }
    }
  }

 private:
  static const KernelRegistry& Kernels() {
    static const KernelRegistry* const kernels = [] {
      auto* made = new KernelRegistry;
      RegisterCpuKernels(*made);
      return made;
    }();
    return *kernels;
  }

  const proto::Plan& plan_;
  const int rank_;
  const BoundPlan bound_;
  const StateLayout state_;
  CpuDevice device_;
  PlanCommunicators communicators_;
  std::unique_ptr<Executor> executor_;
  ArenaSource source_;
  std::unique_ptr<PeerMonitor> monitor_;
};

proto::Manifest ManifestOf(uint64_t step) {
  proto::Manifest manifest;
  manifest.mutable_position()->set_steps(step);
  manifest.mutable_model()->set_fingerprint("one");
  return manifest;
}

void ForEachRank(int ranks, const std::function<void(SavingRank&)>& body) {
  const proto::Plan plan = TinyPlan({.shard = true});
  const testing::TestWorld world(ranks);
  world.RunThreads([&](const Rendezvous& rendezvous) {
    SavingRank rank(plan, rendezvous);
    body(rank);
    EXPECT_TRUE(rank.monitor().Goodbye().ok());
  });
}

// Agreements and texts to and from rank 0, counted there.
struct Traffic {
  int64_t agreements = 0;
  int64_t texts = 0;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

Traffic TrafficOf(SavingRank& rank, const std::function<void()>& what) {
  const Agreement::Counts before = rank.monitor().agreement_counts();
  what();
  const Agreement::Counts after = rank.monitor().agreement_counts();
  return {after.agreements - before.agreements,
          after.messages_in - before.messages_in + after.messages_out - before.messages_out};
}

void SaveAndWait(CheckpointSaver& saver, uint64_t step) {
  const absl::Status saved = saver.Save(ManifestOf(step));
  EXPECT_TRUE(saved.ok()) << saved;
  saver.Wait();
  const std::vector<CheckpointSaver::Outcome> outcomes = saver.TakeOutcomes();
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_TRUE(outcomes[0].status.ok()) << outcomes[0].status;
  EXPECT_EQ(outcomes[0].step, step);
}

using Kind = std::tuple<int, CheckpointType, bool>;  // ranks, type, async

class SavingTest : public ::testing::TestWithParam<Kind> {};

// For a save each rank but rank 0 sends one text and gets one, with nothing agreed on before it writes. What
// is to be read is named in one agreement, and that all could read it in another; reading itself needs none.
TEST_P(SavingTest, RanksExchangeNothingButAnAgreement) {
  const auto [ranks, type, async] = GetParam();
  const TempFolder folder;
  ForEachRank(ranks, [&, type = type, async = async, ranks = ranks](SavingRank& rank) {
    const auto saver = rank.Saver({.folder = folder.Path("run"), .async = async}, type);
    for (const uint64_t step : {1, 2}) {
      rank.Fill(static_cast<float>(step));
      const Traffic traffic = TrafficOf(rank, [&] { SaveAndWait(*saver, step); });
      if (rank.rank() == 0) {
        EXPECT_EQ(traffic, (Traffic{1, 2 * (ranks - 1)}));
      }
    }
    rank.Fill(7);
    const Traffic traffic = TrafficOf(rank, [&] {
      const absl::StatusOr<Resumed> resumed = rank.ResumeFrom(folder.Path("run"));
      ASSERT_TRUE(resumed.ok()) << resumed.status();
      ASSERT_NE(resumed->reader, nullptr);
      EXPECT_EQ(resumed->reader->manifest().position().steps(), 2u);
    });
    if (rank.rank() == 0) {
      EXPECT_EQ(traffic, (Traffic{2, 2 * 2 * (ranks - 1)}));
    }
    rank.ExpectAll(2);
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, SavingTest,
                         ::testing::Combine(::testing::Values(1, 2, 3),
                                            ::testing::Values(CheckpointType::kFull, CheckpointType::kSharded,
                                                              CheckpointType::kLocal),
                                            ::testing::Bool()));

// What is saved is the state at the call, whatever becomes of it while a thread writes.
TEST(CheckpointSaverTest, WhatChangesAfterTheCallIsNotSaved) {
  const TempFolder folder;
  ForEachRank(2, [&](SavingRank& rank) {
    const auto saver = rank.Saver({.folder = folder.Path("run")}, CheckpointType::kFull);
    rank.Fill(1);
    ASSERT_TRUE(saver->Save(ManifestOf(1)).ok());
    rank.Fill(2);
    saver->Wait();
    ASSERT_TRUE(rank.ResumeFrom(folder.Path("run")).ok());
    rank.ExpectAll(1);
  });
}

// A rank that cannot write ends the save on all of them with its words; what was there before stays.
TEST(CheckpointSaverTest, WhatOneRankCannotWriteNobodyHas) {
  const TempFolder folder;
  const std::string run = folder.Path("run");
  ForEachRank(2, [&](SavingRank& rank) {
    const auto saver = rank.Saver({.folder = run}, CheckpointType::kSharded);
    SaveAndWait(*saver, 1);
    // Not all ranks reach the second save before the obstacle is there: an agreement stands between.
    const auto obstruct = [&](const auto&) -> absl::StatusOr<std::string> {
      const StagedCheckpoint staged = {.folder = run, .step = 2};
      std::filesystem::create_directories(staged.path() + "/rank-00001-of-00002.safetensors");
      return "";
    };
    ASSERT_TRUE(rank.agree()("test", 0, "", obstruct).ok());
    ASSERT_TRUE(saver->Save(ManifestOf(2)).ok());
    saver->Wait();
    const std::vector<CheckpointSaver::Outcome> outcomes = saver->TakeOutcomes();
    ASSERT_EQ(outcomes.size(), 1u);
    EXPECT_NE(outcomes[0].status.message().find("rank 1: "), std::string::npos) << outcomes[0].status;
    const absl::StatusOr<Resumed> resumed = rank.ResumeFrom(run);
    ASSERT_TRUE(resumed.ok() && resumed->reader != nullptr) << resumed.status();
    EXPECT_EQ(resumed->reader->manifest().position().steps(), 1u);
  });
}

}  // namespace
}  // namespace ft
