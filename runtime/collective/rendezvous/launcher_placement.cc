#include "runtime/collective/rendezvous/launcher_placement.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/rendezvous/slurm_lists.h"

namespace ft {
namespace {

constexpr char kLoopback[] = "127.0.0.1";

// A variable that is set, and its value.
struct Setting {
  const char* name = nullptr;  // null: none of them is set
  const char* value = nullptr;
};

Setting FirstOf(absl::Span<const char* const> names, EnvironmentLookup lookup) {
  for (const char* name : names) {
    if (name == nullptr) continue;
    if (const char* value = lookup(name); value != nullptr && *value != '\0') return {name, value};
  }
  return {};
}

absl::Status NotSet(absl::string_view variable, const StartedBy& started, EnvironmentLookup lookup) {
  const Launcher& launcher = *started.launcher;
  return absl::InvalidArgumentError(absl::StrCat(
      "environment variable ", variable, " is not set, though ", launcher.rank, "='", lookup(launcher.rank),
      "' and ", WorldSizeSetting(started, lookup), " are: pass all of ", launcher.name,
      "'s variables on, or set RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and "
      "MASTER_PORT on every rank"));
}

absl::Status UnknownMaster(const StartedBy& started, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("environment variable MASTER_ADDR is not set, and on which host rank 0 of ",
                   started.world_size, " is does not follow from what ", started.launcher->name,
                   " sets: ", why, "; set it on every rank (", started.launcher->pass_on, ")"));
}

absl::Status BadList(const Setting& list, const absl::Status& wrong, absl::string_view what) {
  return BadVariable(
      list.name, list.value,
      absl::StrCat(wrong.message(), ", so it is no ", what,
                   " that Slurm writes: set RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and "
                   "MASTER_PORT on every rank"));
}

absl::StatusOr<std::vector<std::string>> HostsOf(const Setting& list) {
  absl::StatusOr<std::vector<std::string>> hosts = ExpandHostList(list.value);
  if (!hosts.ok()) return BadList(list, hosts.status(), "list of nodes");
  return hosts;
}

// Tasks on each node of a Slurm step.
absl::StatusOr<std::vector<int>> TasksOfNodes(const StartedBy& started, EnvironmentLookup lookup) {
  const Setting counts = FirstOf({"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}, lookup);
  if (counts.name == nullptr) return NotSet("SLURM_STEP_TASKS_PER_NODE", started, lookup);
  absl::StatusOr<std::vector<int>> tasks = ExpandTasksPerNode(counts.value);
  if (!tasks.ok()) return BadList(counts, tasks.status(), "count of tasks");
  const int64_t sum = std::accumulate(tasks->begin(), tasks->end(), int64_t{0});
  if (sum != started.world_size) {
    return BadVariable(counts.name, counts.value,
                       absl::StrCat("counts ", sum, " tasks, which contradicts ",
                                    WorldSizeSetting(started, lookup), ": start the ranks by srun"));
  }
  return tasks;
}

// Rank 0 is on the first node, in whatever way the tasks are dealt out but the user's own.
absl::StatusOr<std::string> FirstNodeOfStep(const StartedBy& started, const std::vector<int>& tasks, int node,
                                            EnvironmentLookup lookup) {
  if (tasks.size() == 1) return kLoopback;
  const Setting dealt = FirstOf({"SLURM_DISTRIBUTION"}, lookup);
  if (dealt.name != nullptr && absl::StartsWith(dealt.value, "arbitrary"))
    return UnknownMaster(started, "SLURM_DISTRIBUTION='arbitrary' may put it on any node");
  if (started.rank == 0 && node != 0)
    return UnknownMaster(started, absl::StrCat("it is on the node with SLURM_NODEID='", node, "'"));
  const Setting list = FirstOf({"SLURM_STEP_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NODELIST"}, lookup);
  if (list.name == nullptr) return NotSet("SLURM_STEP_NODELIST", started, lookup);
  FT_ASSIGN_OR_RETURN(const std::vector<std::string> hosts, HostsOf(list));
  if (hosts.size() != tasks.size()) {
    return BadVariable(list.name, list.value,
                       absl::StrCat("has ", hosts.size(), " nodes, though the step has tasks on ",
                                    tasks.size(), ": start the ranks by srun, or set MASTER_ADDR"));
  }
  return hosts[0];
}

// The first node of the allocation that mpirun found itself in: it starts its ranks from there on. Empty:
// there is no allocation.
absl::StatusOr<std::string> FirstNodeOfAllocation(const StartedBy& started, EnvironmentLookup lookup) {
  const Setting list = FirstOf({"SLURM_JOB_NODELIST", "SLURM_NODELIST"}, lookup);
  if (list.name == nullptr) return "";
  FT_ASSIGN_OR_RETURN(const std::vector<std::string> hosts, HostsOf(list));
  const Setting here = FirstOf({"SLURMD_NODENAME"}, lookup);
  if (started.rank == 0 && here.name != nullptr && hosts[0] != here.value) {
    return UnknownMaster(started, absl::StrCat("it is on ", here.value, ", not on the first node of ",
                                               list.name, "='", list.value, "'"));
  }
  return hosts[0];
}

// Open MPI 4's ranks know how to reach mpirun ("1087832064.0;tcp://10.0.0.1,10.1.0.1:52429;tcp6://..."), on
// whose host rank 0 is unless the user maps ranks otherwise. Of several addresses none is known to be right.
absl::StatusOr<std::string> HostOfMpirun(const StartedBy& started, EnvironmentLookup lookup) {
  const Setting uri = FirstOf({"OMPI_MCA_orte_hnp_uri"}, lookup);
  if (uri.name == nullptr) return UnknownMaster(started, "its ranks are on several hosts");
  const Setting daemon = FirstOf({"OMPI_MCA_orte_local_daemon_uri"}, lookup);
  if (started.rank == 0 && daemon.name != nullptr && absl::string_view(daemon.value) != uri.value)
    return UnknownMaster(started, "it is not on the host of mpirun");
  std::vector<absl::string_view> addresses;
  for (absl::string_view part : absl::StrSplit(uri.value, ';')) {
    if (!absl::ConsumePrefix(&part, "tcp://")) continue;
    for (const absl::string_view address : absl::StrSplit(part.substr(0, part.rfind(':')), ','))
      addresses.push_back(address);
  }
  if (addresses.size() != 1 || addresses[0].empty())
    return UnknownMaster(started, absl::StrCat("the host of mpirun has ", addresses.size(), " addresses"));
  return std::string(addresses[0]);
}

absl::StatusOr<std::string> FindMaster(const StartedBy& started, EnvironmentLookup lookup,
                                       bool on_this_host) {
  if (on_this_host) return kLoopback;
  const MasterSource source = started.launcher->master;
  if (source == MasterSource::kOpenMpi || source == MasterSource::kAllocation) {
    FT_ASSIGN_OR_RETURN(std::string first, FirstNodeOfAllocation(started, lookup));
    if (!first.empty()) return first;
  }
  if (source == MasterSource::kOpenMpi) return HostOfMpirun(started, lookup);
  return UnknownMaster(started, "its ranks may be on several hosts");
}

// FNV-1a: the same on every host.
uint64_t HashOf(absl::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

uint16_t StorePort(uint64_t number) {
  return static_cast<uint16_t>(kFirstStorePort + static_cast<int>(number % kStorePorts));
}

// Jobs of one host at one time must not meet in one store: the number of the job, else of the process of
// the launcher that all ranks of one host are connected with, gives the port and the name of the run.
absl::Status NameRun(const StartedBy& started, EnvironmentLookup lookup, PeerProcess peer_process,
                     LaunchEnvironment* environment) {
  environment->master_port = kDefaultStorePort;
  Setting job = FirstOf(started.launcher->job, lookup);
  if (started.launcher->master == MasterSource::kStep && job.name != nullptr) {
    uint64_t number = 0, step = 0;
    if (!absl::SimpleAtoi(job.value, &number)) return BadVariable(job.name, job.value, "is not a number");
    const Setting id = FirstOf({"SLURM_STEP_ID", "SLURM_STEPID"}, lookup);
    if (id.name != nullptr && !absl::SimpleAtoi(id.value, &step))
      return BadVariable(id.name, id.value, "is not a number");
    environment->master_port = StorePort(16 * number + step);
    environment->run_id = absl::StrCat("slurm-", number, ".", step);
    return absl::OkStatus();
  }
  std::string process;
  if (job.name == nullptr && environment->local_world_size == started.world_size) {
    int descriptor = -1;
    FT_RETURN_IF_ERROR(ReadNumber(lookup, "PMI_FD", 0, 1 << 20, &descriptor));
    const int pid = descriptor < 0 || peer_process == nullptr ? 0 : peer_process(descriptor);
    process = pid > 0 ? absl::StrCat(pid) : "";
    if (pid > 0) job = {"pid", process.c_str()};
  }
  if (job.name == nullptr) return absl::OkStatus();
  environment->run_id = absl::StrCat(job.name, "-", job.value);
  environment->master_port = StorePort(HashOf(environment->run_id));
  return absl::OkStatus();
}

// What the launcher itself says of the rank's place; MASTER_ADDR is not set.
absl::Status PlaceOnNode(const StartedBy& started, EnvironmentLookup lookup, LaunchEnvironment* environment) {
  const Launcher& launcher = *started.launcher;
  if (launcher.node != nullptr) {
    if (lookup(launcher.node) == nullptr) return NotSet(launcher.node, started, lookup);
    FT_RETURN_IF_ERROR(ReadNumber(lookup, launcher.node, 0, kMaxWorldSize, &environment->group_rank));
  }
  if (launcher.local_rank != nullptr) {
    if (lookup(launcher.local_rank) == nullptr) return NotSet(launcher.local_rank, started, lookup);
    FT_RETURN_IF_ERROR(ReadNumber(lookup, launcher.local_rank, 0, kMaxWorldSize, &environment->local_rank));
  }
  if (launcher.local_world_size != nullptr) {
    if (lookup(launcher.local_world_size) == nullptr)
      return NotSet(launcher.local_world_size, started, lookup);
    FT_RETURN_IF_ERROR(
        ReadNumber(lookup, launcher.local_world_size, 1, started.world_size, &environment->local_world_size));
  }
  return absl::OkStatus();
}

absl::Status PlaceInStep(const StartedBy& started, EnvironmentLookup lookup, LaunchEnvironment* environment,
                         std::string* first_node) {
  FT_ASSIGN_OR_RETURN(const std::vector<int> tasks, TasksOfNodes(started, lookup));
  const int node = environment->group_rank;
  if (static_cast<size_t>(node) >= tasks.size()) {
    return BadVariable(started.launcher->node, lookup(started.launcher->node),
                       absl::StrCat("is not a node of this step, which has tasks on ", tasks.size()));
  }
  environment->local_world_size = tasks[static_cast<size_t>(node)];
  if (lookup("MASTER_ADDR") != nullptr) return absl::OkStatus();
  FT_ASSIGN_OR_RETURN(*first_node, FirstNodeOfStep(started, tasks, node, lookup));
  return absl::OkStatus();
}

absl::Status CheckPlace(const StartedBy& started, EnvironmentLookup lookup,
                        const LaunchEnvironment& environment) {
  if (environment.local_rank < environment.local_world_size) return absl::OkStatus();
  const Setting rank = FirstOf({"LOCAL_RANK", started.launcher->local_rank}, lookup);
  return BadVariable(
      rank.name == nullptr ? "LOCAL_RANK" : rank.name, rank.value == nullptr ? "" : rank.value,
      absl::StrCat("is not below the number of ranks on this node, ", environment.local_world_size,
                   ": give each rank of a node its own number from 0"));
}

absl::Status CheckWorldSize(const StartedBy& started, EnvironmentLookup lookup) {
  int world_size = started.world_size;
  FT_RETURN_IF_ERROR(ReadNumber(lookup, "WORLD_SIZE", 1, kMaxWorldSize, &world_size));
  if (world_size == started.world_size) return absl::OkStatus();
  return BadVariable(
      "WORLD_SIZE", lookup("WORLD_SIZE"),
      absl::StrCat("contradicts ", WorldSizeSetting(started, lookup), " of ", started.launcher->name,
                   ": unset it, or set RANK on every rank as well; to train alone, set ", kAlone));
}

// Our own names, where the user has set some of them.
absl::Status ReadOwnNames(EnvironmentLookup lookup, LaunchEnvironment* environment) {
  FT_RETURN_IF_ERROR(ReadNumber(lookup, "LOCAL_RANK", 0, kMaxWorldSize, &environment->local_rank));
  FT_RETURN_IF_ERROR(
      ReadNumber(lookup, "LOCAL_WORLD_SIZE", 1, environment->world_size, &environment->local_world_size));
  FT_RETURN_IF_ERROR(ReadNumber(lookup, "GROUP_RANK", 0, kMaxWorldSize, &environment->group_rank));
  int port = environment->master_port;
  FT_RETURN_IF_ERROR(ReadNumber(lookup, "MASTER_PORT", 1, 65535, &port));
  environment->master_port = static_cast<uint16_t>(port);
  if (const char* address = lookup("MASTER_ADDR"); address != nullptr) {
    if (*address == '\0')
      return BadVariable("MASTER_ADDR", address, "is empty: give the name or address of rank 0's host");
    environment->master_addr = address;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LaunchEnvironment> PlaceRank(const StartedBy& started, EnvironmentLookup lookup,
                                            PeerProcess peer_process) {
  LaunchEnvironment environment;
  environment.rank = started.rank;
  environment.world_size = started.world_size;
  environment.launcher = started.launcher->name;
  FT_RETURN_IF_ERROR(CheckWorldSize(started, lookup));
  if (started.launcher->master == MasterSource::kStep)
    FT_RETURN_IF_ERROR(ReadNumber(lookup, "SLURM_RESTART_COUNT", 0, 1 << 30, &environment.restart_count));
  if (started.world_size == 1) return environment;  // nobody to be met
  FT_RETURN_IF_ERROR(PlaceOnNode(started, lookup, &environment));
  if (started.launcher->master == MasterSource::kStep) {
    FT_RETURN_IF_ERROR(PlaceInStep(started, lookup, &environment, &environment.master_addr));
  } else if (lookup("MASTER_ADDR") == nullptr) {
    const bool on_this_host = environment.local_world_size == started.world_size;
    FT_ASSIGN_OR_RETURN(environment.master_addr, FindMaster(started, lookup, on_this_host));
  }
  FT_RETURN_IF_ERROR(NameRun(started, lookup, peer_process, &environment));
  FT_RETURN_IF_ERROR(ReadOwnNames(lookup, &environment));
  FT_RETURN_IF_ERROR(CheckPlace(started, lookup, environment));
  return environment;
}

}  // namespace ft
