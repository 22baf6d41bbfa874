#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/plan/testing/targets.h"
#include "tools/ftexec/check/disk.h"
#include "tools/ftexec/check/judge_ranks.h"
#include "tools/ftexec/check/links.h"

namespace ft {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

// Ranks by host: {2, 1} is two on host-0, one on host-1.
std::vector<PeerInfo> Peers(const std::vector<int>& ranks_of_hosts) {
  std::vector<PeerInfo> peers;
  for (size_t host = 0; host < ranks_of_hosts.size(); ++host) {
    for (int i = 0; i < ranks_of_hosts[host]; ++i) {
      PeerInfo peer;
      peer.rank = static_cast<int>(peers.size());
      peer.hostname = "host-" + std::to_string(host);
      peer.host_id = "id-" + std::to_string(host);
      peer.instruction_set = "x86-64-v4";
      peers.push_back(peer);
    }
  }
  return peers;
}

std::vector<RankFacts> Facts(const std::vector<PeerInfo>& peers) {
  std::vector<RankFacts> facts(peers.size());
  for (size_t rank = 0; rank < peers.size(); ++rank) {
    facts[rank].fingerprint = "plan=1 lr=0.1";
    facts[rank].threads = 2;
    facts[rank].cpus = {0, 1, 2, 3};
    facts[rank].memory_bytes = kGiB;
    facts[rank].pools = {{"memory of the host", peers[rank].hostname, 10 * kGiB}};
    facts[rank].shm_bytes = 1 << 20;
    facts[rank].shm_room = 64 << 20;
  }
  return facts;
}

TEST(JudgeRanksTest, Hosts) {
  EXPECT_EQ(JudgeHosts(Peers({1})).found, "1 is here, on 1 host: host-0 (rank 0)");
  EXPECT_EQ(JudgeHosts(Peers({2, 1})).found,
            "all 3 are here, each once, on 2 hosts: host-0 (ranks 0,1), host-1 (rank 2)");
  EXPECT_NE(JudgeHosts(Peers(std::vector<int>(20, 1))).found.find("and 12 more"), std::string::npos);
}

TEST(JudgeRanksTest, Launcher) {
  EXPECT_EQ(JudgeLauncher({}).found, "none: one process alone");
  LaunchEnvironment environment;
  environment.world_size = 4;
  environment.launcher = "srun";
  environment.remark = "odd";
  EXPECT_EQ(JudgeLauncher(environment).verdict, Verdict::kWarning);
  EXPECT_NE(JudgeLauncher(environment).found.find("srun: rank 0 of 4"), std::string::npos);
}

TEST(JudgeRanksTest, OneThatIsToDoSomethingElseIsNamed) {
  const std::vector<PeerInfo> peers = Peers({2});
  std::vector<RankFacts> facts = Facts(peers);
  EXPECT_EQ(JudgeSameJob(peers, facts).verdict, Verdict::kOk);
  facts[1].fingerprint = "plan=1 lr=0.2";
  const Finding finding = JudgeSameJob(peers, facts);
  EXPECT_EQ(finding.code, absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(finding.found.find("differ in lr: 0.1 on rank 0"), std::string::npos) << finding.found;
}

TEST(JudgeRanksTest, Devices) {
  std::vector<PeerInfo> peers = Peers({3});
  std::vector<RankFacts> facts = Facts(peers);
  EXPECT_EQ(JudgeDevices(peers, facts, "x86-64-v4").found, "CPUs with x86-64-v4");
  peers[2].instruction_set = "generic";
  const Finding finding = JudgeDevices(peers, facts, "generic");
  EXPECT_EQ(finding.verdict, Verdict::kWarning);
  EXPECT_EQ(finding.found,
            "CPUs differ: generic on rank 2, x86-64-v4 on ranks 0,1; all compute with generic");
  for (RankFacts& of_rank : facts) of_rank.device = "H100";
  EXPECT_EQ(JudgeDevices(peers, facts, "").verdict, Verdict::kOk);
  facts[1].device = "A100";
  EXPECT_EQ(JudgeDevices(peers, facts, "").found, "GPUs differ: A100 on rank 1, H100 on ranks 0,2");
}

TEST(JudgeRanksTest, ThreadsAgainstCpus) {
  const std::vector<PeerInfo> peers = Peers({2, 2});
  std::vector<RankFacts> facts = Facts(peers);
  EXPECT_EQ(JudgeThreads(peers, facts).verdict, Verdict::kOk);
  facts[3].threads = 3;  // 5 on 4
  EXPECT_NE(JudgeThreads(peers, facts).found.find("2 ranks of host-1 compute with 5 threads"),
            std::string::npos);
  facts[3].cpus = {4, 5, 6};  // of its own
  EXPECT_EQ(JudgeThreads(peers, facts).verdict, Verdict::kOk);
  facts[3].cpus = {4, 5};
  EXPECT_NE(JudgeThreads(peers, facts).found.find("rank 3 computes with 3 threads, and may run on 2 CPUs"),
            std::string::npos);
}

TEST(JudgeRanksTest, RanksOfAHostShareItsMemory) {
  const std::vector<PeerInfo> peers = Peers({2, 2});
  std::vector<RankFacts> facts = Facts(peers);
  EXPECT_EQ(JudgeMemory(peers, facts).verdict, Verdict::kOk);
  for (RankFacts& of_rank : facts) of_rank.memory_bytes = 6 * kGiB;  // 12 of 10
  Finding finding = JudgeMemory(peers, facts);
  EXPECT_EQ(finding.code, absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(finding.found, "memory of the host on host-0: 10.0 GiB free; ranks 0,1 will take 12.0 GiB");
  EXPECT_EQ(finding.needed, "12.0 GiB");
  for (RankFacts& of_rank : facts) of_rank.memory_bytes = 14 * kGiB / 3;  // 9.3 of 10
  EXPECT_EQ(JudgeMemory(peers, facts).verdict, Verdict::kWarning);
}

TEST(JudgeRanksTest, ContainersOfOneHostShareTheHostsMemoryButNotTheirLimits) {
  std::vector<PeerInfo> peers = Peers({1, 1});
  std::vector<RankFacts> facts = Facts(peers);
  for (size_t rank = 0; rank < 2; ++rank) {
    facts[rank].memory_bytes = 6 * kGiB;
    facts[rank].pools = {{"memory limit of cgroup /", "one boot", 7 * kGiB},
                         {"memory of the host", "one boot", 20 * kGiB}};
  }
  EXPECT_EQ(JudgeMemory(peers, facts).verdict, Verdict::kOk);  // 6 of 7 in each, 12 of 20 in all
  facts[1].pools[0].room = 5 * kGiB;
  EXPECT_EQ(JudgeMemory(peers, facts).found,
            "memory limit of cgroup / on host-1: 5.0 GiB free; rank 1 will take 6.0 GiB");
  facts[1].pools[0].room = 7 * kGiB;
  facts[0].pools[1].room = 11 * kGiB;
  EXPECT_EQ(JudgeMemory(peers, facts).found,
            "memory of the host on host-0: 11.0 GiB free; ranks 0,1 will take 12.0 GiB");
}

TEST(JudgeRanksTest, TheLimitOnAddressesIsEachRanksOwn) {
  const std::vector<PeerInfo> peers = Peers({2});
  std::vector<RankFacts> facts = Facts(peers);
  facts[1].address_space = kGiB / 2;
  const Finding finding = JudgeMemory(peers, facts);
  EXPECT_EQ(finding.verdict, Verdict::kFailure);
  EXPECT_NE(finding.found.find("(ulimit -v) of rank 1"), std::string::npos) << finding.found;
  for (RankFacts& of_rank : facts) of_rank.pools.clear(), of_rank.address_space.reset();
  EXPECT_EQ(JudgeMemory(peers, facts).verdict, Verdict::kWarning);
}

TEST(JudgeRanksTest, SharedMemory) {
  const std::vector<PeerInfo> peers = Peers({3});
  std::vector<RankFacts> facts = Facts(peers);
  EXPECT_EQ(JudgeSharedMemory(peers, facts).verdict, Verdict::kOk);
  for (RankFacts& of_rank : facts) of_rank.shm_room = (3 << 20) - 1;
  const Finding finding = JudgeSharedMemory(peers, facts);
  EXPECT_EQ(finding.code, absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(finding.needed, "3.0 MiB");
  for (RankFacts& of_rank : facts) of_rank.shm_bytes = 0;
  EXPECT_EQ(JudgeSharedMemory(peers, facts).verdict, Verdict::kOk);
}

TEST(JudgeRanksTest, WhatThePlanWasReckonedFor) {
  const Target target = RoundTarget();  // CPUs, 8 on a node
  EXPECT_EQ(JudgeTarget(target, false, Peers({2})).verdict, Verdict::kOk);
  EXPECT_EQ(JudgeTarget(target, false, Peers({8, 8})).verdict, Verdict::kOk);
  EXPECT_EQ(JudgeTarget(target, false, Peers({9})).verdict, Verdict::kWarning);
  EXPECT_EQ(JudgeTarget(target, false, Peers({8, 4})).verdict, Verdict::kWarning);
  EXPECT_EQ(JudgeTarget(target, true, Peers({2})).verdict, Verdict::kWarning);
}

TEST(JudgeRanksTest, ASlowRankIsNamed) {
  const std::vector<PeerInfo> peers = Peers({2, 2});
  EXPECT_EQ(JudgeSpeed(peers, {0.1, 0.11, 0.12, 0.149}).verdict, Verdict::kOk);
  const Finding finding = JudgeSpeed(peers, {0.1, 0.1, 0.1, 0.2});
  EXPECT_EQ(finding.verdict, Verdict::kWarning);
  EXPECT_NE(finding.found.find("rank 3 (host-1) 200.00 ms, 2.0 times the median"), std::string::npos)
      << finding.found;
  EXPECT_EQ(JudgeSpeed(peers, {0.001, 0.001, 0.001, 0.0025}).verdict, Verdict::kOk);  // noise
  EXPECT_EQ(JudgeSpeed(peers, {0, 0, 0, 0}).verdict, Verdict::kOk);
}

class JudgeLinkTest : public ::testing::Test {
 protected:
  JudgeLinkTest() : tries_(LinkTries({use_}, uint64_t{1} << 30)) {}

  // Of 4 ranks in two groups, in seconds.
  Finding Judge(std::vector<double> latency, std::vector<double> large, const Target* target) {
    const std::vector<std::vector<double>> seconds = {std::move(latency), std::move(large)};
    return JudgeLink({.use = use_,
                      .tries = tries_,
                      .seconds = seconds,
                      .groups = {0, 0, 2, 2},
                      .layout = {.ranks = 2, .nodes = 1, .most_on_node = 2, .least_on_node = 2},
                      .target = target});
  }

  // 10 us, and 0.5 ms for what is sent of 1 MB: RoundTarget's figures.
  const LinkUse use_ = {.opcode = proto::ALL_GATHER,
                        .axis = proto::AXIS_SHARD,
                        .ranks = 2,
                        .largest_bytes = 1'000'000,
                        .typical_bytes = 900'000};
  const std::vector<LinkTry> tries_;
  const Target target_ = RoundTarget();
};

TEST_F(JudgeLinkTest, WhatIsNearlyAsLargeIsNotMeasured) {
  ASSERT_EQ(tries_.size(), 2u);
  EXPECT_EQ(tries_[0].whole_bytes, 8u);
  EXPECT_EQ(tries_[1].whole_bytes, 900'000u);
  EXPECT_EQ(LinkTries({use_}, 1000)[1].whole_bytes, 1000u);
  EXPECT_EQ(LinkTries({use_}, 1).size(), 1u);
}

TEST_F(JudgeLinkTest, AsReckonedIsWell) {
  const Finding finding = Judge({1e-5, 1e-5, 1e-5, 1e-5}, {4.6e-4, 4.6e-4, 4.6e-4, 4.6e-4}, &target_);
  EXPECT_EQ(finding.verdict, Verdict::kOk);
  EXPECT_EQ(finding.check, "all_gather over shard");
  EXPECT_EQ(finding.found, "2 ranks, right results, 10.0 us at 8 bytes; 1.00 GB/s at 878.9 KiB");
  EXPECT_EQ(finding.needed, "10.0 us at 8 bytes; 1.00 GB/s at 878.9 KiB (round)");
}

TEST_F(JudgeLinkTest, ASlowLinkIsAWarning) {
  const std::vector<double> good = {1e-5, 1e-5, 1e-5, 1e-5}, large(4, 4.6e-4);
  EXPECT_EQ(Judge({1e-5, 1e-5, 3e-5, 3e-5}, large, &target_).verdict, Verdict::kWarning);
  const Finding slow = Judge(good, std::vector<double>(4, 2e-3), &target_);
  EXPECT_EQ(slow.verdict, Verdict::kWarning);
  EXPECT_NE(slow.found.find("0.23 GB/s"), std::string::npos) << slow.found;
  EXPECT_NE(slow.advice.find("--target"), std::string::npos);
  EXPECT_EQ(Judge(good, std::vector<double>(4, 2e-3), nullptr).verdict, Verdict::kOk);
}

TEST_F(JudgeLinkTest, AGroupWithAWorseLinkIsNamed) {
  const Finding finding = Judge({1e-5, 1e-5, 1e-5, 1e-5}, {4e-4, 4e-4, 8e-4, 8e-4}, &target_);
  EXPECT_EQ(finding.verdict, Verdict::kWarning);
  EXPECT_NE(finding.found.find("ranks 2,3 take up to 2.0 times"), std::string::npos) << finding.found;
}

TEST(DiskTest, CheckpointsThatAreKept) {
  Flags flags;
  EXPECT_EQ(CheckpointsToCome(flags, 100, 0), 1u);
  EXPECT_EQ(CheckpointsToCome(flags, 0, 5), 1u);  // a run always ends with one
  flags.save_every.steps = 30;
  EXPECT_EQ(CheckpointsToCome(flags, 100, 7), 4u);
  EXPECT_EQ(CheckpointsToCome(flags, 90, 0), 3u);
  flags.keep = 2;
  EXPECT_EQ(CheckpointsToCome(flags, 3000, 0), 3u);  // the third before the first goes
  EXPECT_EQ(CheckpointsToCome(flags, 3000, 2), 1u);
  EXPECT_EQ(CheckpointsToCome(flags, 30, 0), 1u);
  flags.keep_every = 1000;
  flags.keep_best = 1;
  EXPECT_EQ(CheckpointsToCome(flags, 3000, 0), 7u);
  flags.keep_best = UINT64_MAX;
  EXPECT_EQ(CheckpointsToCome(flags, 3000, 0), 100u);
}

TEST(DiskTest, FoldersThatAreMissing) {
  EXPECT_TRUE(MissingFolders("/tmp").empty());
  EXPECT_TRUE(MissingFolders("").empty());
  EXPECT_EQ(MissingFolders("/no-such/a/b"),
            (std::vector<std::string>{"/no-such", "/no-such/a", "/no-such/a/b"}));
  EXPECT_EQ(ExistingFolderOf("/no-such/a/b"), "/");
}

}  // namespace
}  // namespace ft
