#include "tools/ftexec/gpu_sharing.h"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tools/ftexec/flags.h"

namespace ft {
namespace {

// By rank: machine and GPU.
std::vector<PeerInfo> PeersOn(const std::vector<std::pair<std::string, std::string>>& places) {
  std::vector<PeerInfo> peers;
  for (const auto& [machine, gpu] : places) {
    PeerInfo peer;
    peer.rank = static_cast<int>(peers.size());
    peer.hostname = "node-" + machine;
    peer.machine = machine;
    peer.gpu = gpu;
    peers.push_back(peer);
  }
  return peers;
}

TEST(GpuSharingTest, RanksOnGpusOfTheirOwn) {
  EXPECT_TRUE(CheckSharing(PeersOn({{"a", "3B"}}), false, 0).ok());
  EXPECT_TRUE(CheckSharing(PeersOn({{"a", "3B"}, {"a", "3C"}, {"b", "3B"}, {"b", "3C"}}), false, 22809).ok())
      << "another machine may have the same addresses";
  EXPECT_TRUE(CheckSharing(PeersOn({{"a", ""}, {"a", ""}}), false, 0).ok()) << "not known";
}

TEST(GpuSharingTest, TwoRanksOnOneGpuAreNamedWithIt) {
  EXPECT_EQ(
      CheckSharing(PeersOn({{"a", "3B"}, {"b", "3B"}, {"a", "3C"}, {"b", "3B"}}), false, 23007),
      absl::FailedPreconditionError(
          "ranks 1,3 compute on one GPU, 3B of node-b; start one rank for each GPU, show each rank "
          "another (CUDA_VISIBLE_DEVICES), or let them share with --share-gpus=on (NCCL 2.30 or newer)"));
  // The lowest ranks are told, whatever the order of addresses.
  const absl::Status several =
      CheckSharing(PeersOn({{"z", "9"}, {"z", "9"}, {"a", "1"}, {"a", "1"}}), false, 0);
  EXPECT_EQ(several.message().find("ranks 0,1 compute on one GPU, 9 of node-z (and 1 other GPU is shared)"),
            0u)
      << several;
}

TEST(GpuSharingTest, TheyMayShareWhereTheyAreLet) {
  const std::vector<PeerInfo> peers = PeersOn({{"a", "3B"}, {"a", "3B"}});
  EXPECT_TRUE(CheckSharing(peers, true, 23000).ok());
  EXPECT_TRUE(CheckSharing(peers, true, 0).ok());
  EXPECT_EQ(CheckSharing(peers, true, 22809).message(),
            "ranks 0,1 compute on one GPU, 3B of node-a, which NCCL 2.28.9 does not let them: NCCL 2.30 or "
            "newer does");
}

TEST(GpuSharingTest, NcclsVariableIsTheDefaultAndFollowsTheFlag) {
  constexpr char kName[] = "NCCL_MULTI_RANK_GPU_ENABLE";
  unsetenv(kName);
  EXPECT_FALSE(NcclMayShareGpus());
  setenv(kName, "0", 1);
  EXPECT_FALSE(NcclMayShareGpus());
  setenv(kName, "1", 1);
  EXPECT_TRUE(NcclMayShareGpus());
  Flags flags;
  flags.share_gpus = false;
  TellNcclOfSharing(flags);
  EXPECT_TRUE(NcclMayShareGpus()) << "not our business without GPUs";
  flags.device = DeviceKind::kCuda;
  TellNcclOfSharing(flags);
  EXPECT_FALSE(NcclMayShareGpus());
  flags.share_gpus = true;
  TellNcclOfSharing(flags);
  EXPECT_TRUE(NcclMayShareGpus());
  unsetenv(kName);
}

}  // namespace
}  // namespace ft
