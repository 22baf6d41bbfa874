// What rank 0 makes of the facts of all ranks. Pure functions; vectors are by rank.
#pragma once

#include <string>
#include <vector>

#include "runtime/collective/rendezvous/launch_environment.h"
#include "runtime/collective/rendezvous/peer_info.h"
#include "runtime/plan/target.h"
#include "tools/ftexec/check/finding.h"
#include "tools/ftexec/check/rank_facts.h"

namespace ft {

// Who started this process, and who it is: "srun: rank 0 of 4, ...".
Finding JudgeLauncher(const LaunchEnvironment& environment);

// Which ranks are on which host.
Finding JudgeHosts(const std::vector<PeerInfo>& peers);

// Whether all are about to run the same. A failure as of a run whose ranks meet.
Finding JudgeSameJob(std::vector<PeerInfo> peers, const std::vector<RankFacts>& facts);

// What they compute on. `settled`: the instruction set that all ranks take.
Finding JudgeDevices(const std::vector<PeerInfo>& peers, const std::vector<RankFacts>& facts,
                     const std::string& settled);

// Threads of the ranks of a host against the CPUs that they may run on.
Finding JudgeThreads(const std::vector<PeerInfo>& peers, const std::vector<RankFacts>& facts);

// What a run takes of the memory that ranks share, and of their address spaces.
Finding JudgeMemory(const std::vector<PeerInfo>& peers, const std::vector<RankFacts>& facts);

// The same of /dev/shm.
Finding JudgeSharedMemory(const std::vector<PeerInfo>& peers, const std::vector<RankFacts>& facts);

// Where ranks run against what the plan's costs were reckoned for.
Finding JudgeTarget(const Target& target, bool cuda, const std::vector<PeerInfo>& peers);

// Names of the nodes of the ranks, for LayoutOnNodes.
std::vector<std::string> NodesOf(const std::vector<PeerInfo>& peers);

// How fast the ranks compute: seconds of an eval_step, 0 for not known.
Finding JudgeSpeed(const std::vector<PeerInfo>& peers, const std::vector<double>& seconds);

}  // namespace ft
