#include "tools/ftexec/check/judge_ranks.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fmt/format.h"
#include "runtime/base/printable.h"
#include "runtime/base/ranks_text.h"
#include "runtime/collective/liveness/step_times.h"
#include "runtime/collective/rendezvous/meeting.h"

namespace ft {
namespace {

constexpr size_t kMostNamed = 8;
// Seconds of a forward pass: less is what a system does beside.
constexpr double kLeastDelay = 2e-3;

std::string Plural(size_t count, const char* what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// The ranks of each host, by the first of them.
std::vector<std::pair<std::string, std::vector<int>>> RanksByHost(const std::vector<PeerInfo>& peers) {
  std::vector<std::pair<std::string, std::vector<int>>> hosts;  // by host_id
  std::map<std::string, size_t> places;
  for (const PeerInfo& peer : peers) {
    const auto [place, is_new] = places.try_emplace(peer.host_id, hosts.size());
    if (is_new) hosts.emplace_back(peer.host_id, std::vector<int>());
    hosts[place->second].second.push_back(peer.rank);
  }
  return hosts;
}

std::string HostOf(const std::vector<PeerInfo>& peers, int rank) {
  return peers[static_cast<size_t>(rank)].hostname;
}

// Values that ranks have, with the ranks: "x86-64-v3 on ranks 0-2, generic on rank 3".
std::string ByValue(const std::vector<std::string>& values) {
  std::map<std::string, std::vector<int>> ranks;
  for (size_t rank = 0; rank < values.size(); ++rank) ranks[values[rank]].push_back(static_cast<int>(rank));
  std::vector<std::string> told;
  for (const auto& [value, having] : ranks) told.push_back(absl::StrCat(value, " on ", RanksText(having)));
  return absl::StrJoin(told, ", ");
}

// Ranks that take from one pool.
struct Demand {
  uint64_t wanted = 0;
  uint64_t room = 0;
  std::vector<int> ranks;
};

// Of demands the one with the least left.
const std::pair<const std::string, Demand>& Tightest(const std::map<std::string, Demand>& demands) {
  return *std::min_element(demands.begin(), demands.end(), [](const auto& a, const auto& b) {
    return static_cast<double>(a.second.room) - static_cast<double>(a.second.wanted) <
           static_cast<double>(b.second.room) - static_cast<double>(b.second.wanted);
  });
}

}  // namespace

Finding JudgeLauncher(const LaunchEnvironment& environment) {
  if (environment.world_size == 1 && environment.master_addr.empty())
    return Ok("launcher", "none: one process alone");
  std::string text = environment.launcher.empty() ? "RANK and its like" : environment.launcher;
  absl::StrAppend(&text, ": rank ", environment.rank, " of ", environment.world_size, ", ",
                  environment.local_rank, " of ", environment.local_world_size, " on its node");
  if (!environment.master_addr.empty()) {
    absl::StrAppend(&text, "; the ", environment.agent_store ? "launcher" : "first rank",
                    " serves the store at ", environment.master_addr, ":", environment.master_port);
  }
  if (environment.restart_count > 0) absl::StrAppend(&text, "; attempt ", environment.restart_count);
  if (environment.remark.empty()) return Ok("launcher", text);
  return Warning("launcher", text, "", environment.remark);
}

Finding JudgeHosts(const std::vector<PeerInfo>& peers) {
  const auto hosts = RanksByHost(peers);
  std::vector<std::string> told;
  for (const auto& [id, ranks] : hosts) {
    if (told.size() == kMostNamed) break;
    told.push_back(absl::StrCat(HostOf(peers, ranks[0]), " (", RanksText(ranks), ")"));
  }
  if (hosts.size() > kMostNamed) told.push_back(absl::StrCat("and ", hosts.size() - kMostNamed, " more"));
  return Ok("ranks",
            absl::StrCat(
                peers.size() == 1 ? "1 is here" : absl::StrCat("all ", peers.size(), " are here, each once"),
                ", on ", Plural(hosts.size(), "host"), ": ", absl::StrJoin(told, ", ")));
}

Finding JudgeSameJob(std::vector<PeerInfo> peers, const std::vector<RankFacts>& facts) {
  for (PeerInfo& peer : peers) {
    peer.fingerprint = facts[static_cast<size_t>(peer.rank)].fingerprint;
    peer.label = facts[static_cast<size_t>(peer.rank)].label;
  }
  if (const absl::Status status = CompareFingerprints(peers); !status.ok())
    return Failure("same job", status);
  return Ok("same job", "plan, options and data agree on all ranks");
}

Finding JudgeDevices(const std::vector<PeerInfo>& peers, const std::vector<RankFacts>& facts,
                     const std::string& settled) {
  std::vector<std::string> values;
  for (const PeerInfo& peer : peers) {
    const RankFacts& of_rank = facts[static_cast<size_t>(peer.rank)];
    values.push_back(of_rank.device.empty() ? peer.instruction_set : of_rank.device);
  }
  const bool same = std::set<std::string>(values.begin(), values.end()).size() == 1;
  const bool cpu = !settled.empty();
  if (same) return Ok("device", cpu ? absl::StrCat("CPUs with ", settled) : values[0]);
  if (cpu) {
    return Warning("device", absl::StrCat("CPUs differ: ", ByValue(values), "; all compute with ", settled),
                   "", "machines of one kind, or expect the speed of the oldest");
  }
  return Warning("device", absl::StrCat("GPUs differ: ", ByValue(values)), "one kind",
                 "machines of one kind, or expect the speed of the slowest");
}

Finding JudgeThreads(const std::vector<PeerInfo>& peers, const std::vector<RankFacts>& facts) {
  int most = 0;
  size_t cpus_of_first = 0;
  for (const auto& [host, ranks] : RanksByHost(peers)) {
    int threads = 0;
    std::set<int> cpus;
    for (const int rank : ranks) {
      const RankFacts& of_rank = facts[static_cast<size_t>(rank)];
      threads += of_rank.threads;
      most = std::max(most, of_rank.threads);
      cpus.insert(of_rank.cpus.begin(), of_rank.cpus.end());
      if (of_rank.threads > static_cast<int>(of_rank.cpus.size())) {
        return Warning("threads",
                       fmt::format("rank {} computes with {} threads, and may run on {}", rank,
                                   of_rank.threads, Plural(of_rank.cpus.size(), "CPU")),
                       absl::StrCat(of_rank.threads, " CPUs"),
                       "fewer --threads, or let the launcher bind ranks to more CPUs");
      }
    }
    if (cpus_of_first == 0) cpus_of_first = cpus.size();
    if (threads > static_cast<int>(cpus.size())) {
      return Warning("threads",
                     fmt::format("{} ranks of {} compute with {} threads, and may run on {}", ranks.size(),
                                 HostOf(peers, ranks[0]), threads, Plural(cpus.size(), "CPU")),
                     absl::StrCat(threads, " CPUs"),
                     "fewer ranks or --threads, or let the launcher bind ranks to CPUs of their own");
    }
  }
  return Ok("threads", fmt::format("{} a rank; {} may run on {}", Plural(static_cast<size_t>(most), "thread"),
                                   "the ranks of the first host", Plural(cpus_of_first, "CPU")));
}

Finding JudgeMemory(const std::vector<PeerInfo>& peers, const std::vector<RankFacts>& facts) {
  // In its own words: room, and who wants how much of it.
  std::map<std::string, Demand> demands;
  for (const PeerInfo& peer : peers) {
    const RankFacts& of_rank = facts[static_cast<size_t>(peer.rank)];
    for (const MemoryPool& pool : of_rank.pools) {
      // Groups of one name on several systems, or in containers of one, are not the same.
      const bool host = pool.name == "memory of the host";
      const std::string key = absl::StrCat(pool.system, "\n", host ? "" : peer.host_id, "\n", pool.name);
      Demand& demand = demands[key];
      demand.room = demand.ranks.empty() ? pool.room : std::min(demand.room, pool.room);
      demand.wanted += of_rank.memory_bytes;
      demand.ranks.push_back(peer.rank);
    }
    if (of_rank.address_space.has_value()) {
      demands[absl::StrCat("\n\nlimit on addresses (ulimit -v) of rank ", peer.rank)] = {
          .wanted = of_rank.memory_bytes, .room = *of_rank.address_space, .ranks = {peer.rank}};
    }
  }
  if (demands.empty()) return Warning("memory", "the system does not say how much there is", "", "");
  const auto& [key, demand] = Tightest(demands);
  const std::string pool = key.substr(key.rfind('\n') + 1);
  const std::string found =
      fmt::format("{} on {}: {} free; {} will take {}", pool, HostOf(peers, demand.ranks[0]),
                  BytesText(demand.room), RanksText(demand.ranks), BytesText(demand.wanted));
  if (demand.wanted > demand.room) {
    return Failure(
        "memory", absl::StatusCode::kResourceExhausted, found, BytesText(demand.wanted),
        "more memory, more hosts, or a plan that takes less (--remat, --offload; ftc explain says how "
        "much)");
  }
  // The system's account is an estimate, and what it has is not only for us.
  if (static_cast<double>(demand.wanted) > 0.9 * static_cast<double>(demand.room))
    return Warning("memory", found, "some to spare",
                   "end what else runs there, or take a plan that wants less");
  return Ok("memory", found);
}

Finding JudgeSharedMemory(const std::vector<PeerInfo>& peers, const std::vector<RankFacts>& facts) {
  std::map<std::string, Demand> demands;
  for (const PeerInfo& peer : peers) {
    const RankFacts& of_rank = facts[static_cast<size_t>(peer.rank)];
    if (!of_rank.shm_room.has_value() || of_rank.shm_bytes == 0) continue;
    Demand& demand = demands[peer.host_id];
    demand.room = demand.ranks.empty() ? *of_rank.shm_room : std::min(demand.room, *of_rank.shm_room);
    demand.wanted += of_rank.shm_bytes;
    demand.ranks.push_back(peer.rank);
  }
  if (demands.empty()) return Ok("/dev/shm", "not used: ranks talk over the network, or there is one");
  const Demand& demand = Tightest(demands).second;
  const std::string found =
      fmt::format("{} free on {}; {} will take {}", BytesText(demand.room), HostOf(peers, demand.ranks[0]),
                  RanksText(demand.ranks), BytesText(demand.wanted));
  if (demand.wanted <= demand.room) return Ok("/dev/shm", found);
  return Failure("/dev/shm", absl::StatusCode::kResourceExhausted, found, BytesText(demand.wanted),
                 "make it larger (docker run --shm-size=1g, mount -o remount,size=1g /dev/shm), or use "
                 "--comm-backend=gloo");
}

Finding JudgeTarget(const Target& target, bool cuda, const std::vector<PeerInfo>& peers) {
  const auto hosts = RanksByHost(peers);
  size_t most = 0, least = peers.size();
  for (const auto& [host, ranks] : hosts) {
    most = std::max(most, ranks.size());
    least = std::min(least, ranks.size());
  }
  const std::string found =
      fmt::format("{}, {} on a node; here {}", target.name(), Plural(target.ranks_per_node(), "rank"),
                  least == most ? Plural(most, "rank") + " on a host"
                                : fmt::format("{} to {} ranks on a host", least, most));
  if (target.cuda() != cuda) {
    return Warning(
        "target", absl::StrCat(found, ", of the other kind of device"),
        absl::StrCat("a target of ", cuda ? "GPUs" : "CPUs"),
        "compile with the --target of this machine: schedule and budgets were reckoned for another");
  }
  if (most > target.ranks_per_node() || (hosts.size() > 1 && least < target.ranks_per_node())) {
    return Warning("target", found, fmt::format("{} on a host", Plural(target.ranks_per_node(), "rank")),
                   "start as many on each host, or compile with a target of such nodes");
  }
  return Ok("target", found);
}

std::vector<std::string> NodesOf(const std::vector<PeerInfo>& peers) {
  std::vector<std::string> nodes;
  nodes.reserve(peers.size());
  for (const PeerInfo& peer : peers) nodes.push_back(peer.host_id);
  return nodes;
}

Finding JudgeSpeed(const std::vector<PeerInfo>& peers, const std::vector<double>& seconds) {
  std::vector<double> sorted;
  for (const double each : seconds)
    if (each > 0) sorted.push_back(each);
  if (sorted.empty()) return Ok("speed", "not measured: the plan has no eval_step");
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[(sorted.size() - 1) / 2];
  std::vector<std::string> slow;
  for (const PeerInfo& peer : peers) {
    const double each = seconds[static_cast<size_t>(peer.rank)];
    if (each <= SlowRank::kSlowFactor * median || each <= median + kLeastDelay) continue;
    slow.push_back(fmt::format("rank {} ({}) {:.2f} ms, {:.1f} times the median", peer.rank, peer.hostname,
                               each * 1e3, each / median));
  }
  if (slow.empty()) {
    return Ok("speed", fmt::format("a forward pass computes for {:.2f} to {:.2f} ms", sorted.front() * 1e3,
                                   sorted.back() * 1e3));
  }
  if (slow.size() > kMostNamed) slow.resize(kMostNamed);
  return Warning("speed", absl::StrCat("a forward pass computes for: ", absl::StrJoin(slow, ", ")),
                 fmt::format("{:.2f} ms, the median of the ranks", median * 1e3),
                 "look at that host: what else runs there, its clock rate, its CPUs or GPU");
}

}  // namespace ft
