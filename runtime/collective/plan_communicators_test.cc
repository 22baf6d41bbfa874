#include "runtime/collective/plan_communicators.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/backends/null/null_communicator.h"
#include "runtime/device/device.h"
#include "runtime/plan/testing/tiny_plan.h"

namespace ft {
namespace {

using Ranks = std::vector<int>;

proto::Plan TwoAxes() { return TinyPlan({.two_axes = true}); }

std::vector<Ranks> GroupsOf(const proto::Plan& plan, const Mesh& mesh, int rank) {
  std::vector<Ranks> groups;
  for (const CommunicatorGroup& group : CommunicatorGroups(plan, mesh, rank)) groups.push_back(group.ranks);
  return groups;
}

PlanCommunicators Make(const proto::Plan& plan, const Mesh& mesh, int rank) {
  std::vector<std::unique_ptr<Communicator>> made;
  for (const Ranks& ranks : GroupsOf(plan, mesh, rank))
    made.push_back(std::make_unique<NullCommunicator>(0, static_cast<int>(ranks.size())));
  return PlanCommunicators(plan, mesh, rank, std::move(made));
}

TEST(PlanCommunicatorsTest, OneForEachStreamAndAxisThatThePlanUses) {
  // gather over shard; reduce over shard and world; replica over replica.
  EXPECT_EQ(GroupsOf(TwoAxes(), {2, 2}, 1), (std::vector<Ranks>{{0, 1}, {0, 1}, {0, 1, 2, 3}, {1, 3}}));
  EXPECT_EQ(GroupsOf(TwoAxes(), {2, 2}, 2), (std::vector<Ranks>{{2, 3}, {2, 3}, {0, 1, 2, 3}, {0, 2}}));
  EXPECT_EQ(GroupsOf(TwoAxes(), {2, 3}, 5),
            (std::vector<Ranks>{{3, 4, 5}, {3, 4, 5}, {0, 1, 2, 3, 4, 5}, {2, 5}}));
}

TEST(PlanCommunicatorsTest, AxesOfTheSameRanksShareOne) {
  EXPECT_EQ(GroupsOf(TinyPlan(), {1, 3}, 2), (std::vector<Ranks>{{0, 1, 2}, {0, 1, 2}}));
  EXPECT_EQ(GroupsOf(TinyPlan({.shard = false}), {3, 1}, 2), (std::vector<Ranks>{{0, 1, 2}}));
  EXPECT_EQ(GroupsOf(TwoAxes(), {1, 1}, 0), (std::vector<Ranks>{{0}, {0}, {0}}));  // streams share none
  const PlanCommunicators two = Make(TinyPlan(), {1, 3}, 1);
  EXPECT_EQ(two.table().at(proto::REDUCE, proto::AXIS_SHARD), &two.world());
  EXPECT_NE(two.table().at(proto::GATHER, proto::AXIS_SHARD), &two.world());
  EXPECT_EQ(two.table().at(proto::GATHER, proto::AXIS_WORLD), nullptr);
  EXPECT_EQ(two.table().at(proto::H2D, proto::AXIS_NONE), nullptr);
}

TEST(PlanCommunicatorsTest, EveryRankMakesTheSameNumberInTheSameOrder) {
  const proto::Plan plan = TwoAxes();
  for (const Mesh& mesh : {Mesh{2, 2}, Mesh{2, 3}, Mesh{3, 2}, Mesh{1, 4}, Mesh{4, 1}}) {
    const std::vector<Ranks> first = GroupsOf(plan, mesh, 0);
    for (int rank = 0; rank < mesh.world_size(); ++rank) {
      const std::vector<Ranks> groups = GroupsOf(plan, mesh, rank);
      ASSERT_EQ(groups.size(), first.size());
      for (size_t i = 0; i < groups.size(); ++i) {
        EXPECT_EQ(groups[i].size(), first[i].size());
        // Whoever is in my group has the same one.
        for (const int peer : groups[i]) EXPECT_EQ(GroupsOf(plan, mesh, peer)[i], groups[i]);
      }
    }
    const PlanCommunicators made = Make(plan, mesh, 0);
    EXPECT_EQ(made.table().at(proto::GATHER, proto::AXIS_SHARD)->size(), mesh.shard);
    EXPECT_EQ(made.table().at(proto::REPLICA, proto::AXIS_REPLICA)->size(), mesh.replica);
    EXPECT_EQ(made.world().size(), mesh.world_size());
  }
}

TEST(PlanCommunicatorsTest, StagingIsTheSumOverThoseWithSeveralRanks) {
  const size_t shm = StagingBytes(CollectiveBackend::kShm, 2),
               gloo = StagingBytes(CollectiveBackend::kGloo, 2);
  EXPECT_EQ(StagingBytes(TwoAxes(), {2, 2}, CollectiveBackend::kShm), 4 * shm);
  EXPECT_EQ(StagingBytes(TwoAxes(), {2, 2}, CollectiveBackend::kGloo), 4 * gloo);
  EXPECT_EQ(StagingBytes(TwoAxes(), {4, 1}, CollectiveBackend::kShm), 2 * shm)
      << "the shard groups are single ranks";
  EXPECT_EQ(StagingBytes(TwoAxes(), {1, 4}, CollectiveBackend::kShm), 2 * shm);
  EXPECT_EQ(StagingBytes(TwoAxes(), {1, 1}, CollectiveBackend::kShm), 0u);
}

TEST(PlanCommunicatorsTest, StagingOfGpusDependsOnTheOrderOfSums) {
  const size_t fast = StagingBytes(CollectiveBackend::kNccl, 2),
               ordered = StagingBytes(CollectiveBackend::kNccl, 2, true);
  EXPECT_LT(fast, ordered);
  EXPECT_EQ(StagingBytes(TwoAxes(), {2, 2}, CollectiveBackend::kNccl), 4 * fast);
  EXPECT_EQ(StagingBytes(TwoAxes(), {2, 2}, CollectiveBackend::kNccl, true), 4 * ordered);
}

// Does nothing, and remembers what it was told.
class ToldCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 3; }
  absl::Status AllGather(absl::Span<const GatherPart>, const CollectiveLabel&) override { return {}; }
  absl::Status ReduceScatter(absl::Span<const ReducePart>, const CollectiveLabel&) override { return {}; }
  absl::Status AllReduce(absl::Span<const ReducePart>, const CollectiveLabel&) override { return {}; }
  absl::Status AllToAll(const AllToAllParts&, const CollectiveLabel&) override { return {}; }
  absl::Status Broadcast(void*, size_t, int, const CollectiveLabel&) override { return {}; }
  absl::Status Barrier(const CollectiveLabel&) override { return {}; }
  size_t staging_bytes() const override { return 5; }

  void Abort(absl::Status) override { ++aborts; }
  void Detach() override { ++detaches; }
  void Supervise(std::function<InFlight()> in_flight, std::function<void(const absl::Status&)>) override {
    supervised += in_flight ? 1 : 0;
  }
  int aborts = 0, detaches = 0, supervised = 0;
};

TEST(PlanCommunicatorsTest, TheHostMayHaveItsOwn) {
  auto gather = std::make_unique<ToldCommunicator>(), reduce = std::make_unique<ToldCommunicator>(),
       host = std::make_unique<ToldCommunicator>();
  ToldCommunicator &g = *gather, &r = *reduce, &h = *host;
  std::vector<std::unique_ptr<Communicator>> made;
  made.push_back(std::move(gather));
  made.push_back(std::move(reduce));
  const PlanCommunicators all(TinyPlan(), {1, 3}, 0, std::move(made), std::move(host));
  EXPECT_EQ(&all.world(), &h);
  EXPECT_EQ(all.table().at(proto::REDUCE, proto::AXIS_WORLD), &r) << "programs keep theirs";
  EXPECT_EQ(all.staging_bytes(), 10u);
  EXPECT_EQ(all.host_staging_bytes(), 5u);

  const CommunicatorTable copy = all.table();  // as the executor has it
  copy.Supervise(proto::REDUCE, [] { return InFlight{}; }, [](const absl::Status&) {});
  copy.Detach();
  copy.AbortAll(absl::CancelledError("end"));
  EXPECT_EQ(g.supervised, 0);
  EXPECT_GE(r.supervised, 1);
  EXPECT_GE(g.detaches, 1);
  EXPECT_EQ(h.detaches, 0) << "it has no stream";
  for (const ToldCommunicator* one : {&g, &r, &h}) EXPECT_GE(one->aborts, 1);
}

}  // namespace
}  // namespace ft
