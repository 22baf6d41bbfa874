#include "runtime/collective/rendezvous/launch_environment.h"

#include <sys/socket.h>

#include <cstdlib>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/rendezvous/foreign_launcher.h"
#include "runtime/collective/rendezvous/launcher_placement.h"
#include "runtime/collective/rendezvous/launchers.h"

namespace ft {
namespace {

constexpr absl::string_view kStartIt =
    "start the program with torchrun or ftrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT on every "
    "rank";

absl::Status Missing(const char* name, absl::string_view because) {
  return absl::InvalidArgumentError(
      absl::StrCat("environment variable ", name, " is not set, though ", because, ": ", kStartIt));
}

absl::Status ReadRank(EnvironmentLookup lookup, LaunchEnvironment* environment) {
  const char* rank = lookup("RANK");
  const char* world_size = lookup("WORLD_SIZE");
  if (rank == nullptr) {
    return Missing("RANK", world_size != nullptr ? absl::StrCat("WORLD_SIZE='", world_size, "' is")
                                                 : std::string("MASTER_ADDR or MASTER_PORT is"));
  }
  if (world_size == nullptr) return Missing("WORLD_SIZE", absl::StrCat("RANK='", rank, "' is"));
  FT_RETURN_IF_ERROR(ReadNumber(lookup, "WORLD_SIZE", 1, kMaxWorldSize, &environment->world_size));
  int number = 0;
  if (!absl::SimpleAtoi(rank, &number)) return BadVariable("RANK", rank, "is not a number");
  if (number < 0 || number >= environment->world_size) {
    return BadVariable("RANK", rank,
                       absl::StrCat("is not a rank of WORLD_SIZE='", world_size, "': ranks go from 0 to ",
                                    environment->world_size - 1));
  }
  environment->rank = number;
  return absl::OkStatus();
}

absl::Status ReadPlacement(EnvironmentLookup lookup, LaunchEnvironment* environment) {
  FT_RETURN_IF_ERROR(ReadNumber(lookup, "LOCAL_RANK", 0, kMaxWorldSize, &environment->local_rank));
  FT_RETURN_IF_ERROR(
      ReadNumber(lookup, "LOCAL_WORLD_SIZE", 1, environment->world_size, &environment->local_world_size));
  FT_RETURN_IF_ERROR(ReadNumber(lookup, "GROUP_RANK", 0, kMaxWorldSize, &environment->group_rank));
  const char* local_size = lookup("LOCAL_WORLD_SIZE");
  if (local_size != nullptr && environment->local_rank >= environment->local_world_size) {
    return BadVariable("LOCAL_RANK", lookup("LOCAL_RANK"),
                       absl::StrCat("is not below LOCAL_WORLD_SIZE='", local_size,
                                    "': give each rank of a node its own number from 0"));
  }
  return absl::OkStatus();
}

absl::Status ReadStore(EnvironmentLookup lookup, LaunchEnvironment* environment) {
  const char* address = lookup("MASTER_ADDR");
  const char* port = lookup("MASTER_PORT");
  const std::string because = absl::StrCat("WORLD_SIZE=", environment->world_size, " ranks have to meet");
  if (environment->world_size > 1) {
    if (address == nullptr) return Missing("MASTER_ADDR", because);
    if (port == nullptr) return Missing("MASTER_PORT", because);
  }
  if (address != nullptr) {
    if (*address == '\0')
      return BadVariable("MASTER_ADDR", address, "is empty: give the name or address of rank 0's host");
    environment->master_addr = address;
  }
  int number = 0;
  FT_RETURN_IF_ERROR(ReadNumber(lookup, "MASTER_PORT", 1, 65535, &number));
  environment->master_port = static_cast<uint16_t>(number);
  return absl::OkStatus();
}

absl::Status ReadElastic(EnvironmentLookup lookup, LaunchEnvironment* environment) {
  if (const char* run_id = lookup("TORCHELASTIC_RUN_ID"); run_id != nullptr && *run_id != '\0') {
    environment->run_id = run_id;
  }
  if (const char* file = lookup("TORCHELASTIC_ERROR_FILE"); file != nullptr) environment->error_file = file;
  const char* agent = lookup("TORCHELASTIC_USE_AGENT_STORE");
  environment->agent_store = agent != nullptr && absl::string_view(agent) == "True";
  return ReadNumber(lookup, "TORCHELASTIC_RESTART_COUNT", 0, 1 << 30, &environment->restart_count);
}

// PyTorchJob sets RANK to the number of the pod. Where a pod has several ranks, they are for torchrun to
// start.
absl::Status CheckOneRankOfPod(EnvironmentLookup lookup, const LaunchEnvironment& environment) {
  const char* processes = lookup("PET_NPROC_PER_NODE");
  if (processes == nullptr || lookup("LOCAL_RANK") != nullptr) return absl::OkStatus();
  const int ranks = NumberOf(processes);
  if (ranks < 2 || environment.world_size == 1) return absl::OkStatus();
  return BadVariable("PET_NPROC_PER_NODE", processes,
                     absl::StrCat("asks for ", ranks,
                                  " ranks on each node, but LOCAL_RANK is not set, so this would be the only "
                                  "one here: start the program with torchrun --no-python, or with ftrun "
                                  "--nproc-per-node=",
                                  ranks, " --nnodes and --node-rank"));
}

// The process that made a pair of connected sockets.
int PeerOf(int descriptor) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  const bool known = getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0;
  return known ? credentials.pid : 0;
}

}  // namespace

absl::StatusOr<LaunchEnvironment> ParseLaunchEnvironment(EnvironmentLookup lookup, PeerProcess peer_process) {
  LaunchEnvironment environment;
  if (lookup("RANK") == nullptr) {
    FT_ASSIGN_OR_RETURN(const std::optional<StartedBy> started, FindLauncher(lookup));
    if (started.has_value()) return PlaceRank(*started, lookup, peer_process);
    FT_RETURN_IF_ERROR(CheckStartedAlone(lookup));
    environment.remark = RemarkOnAllocation(lookup);
  }
  const bool launched = lookup("RANK") != nullptr || lookup("WORLD_SIZE") != nullptr ||
                        lookup("MASTER_ADDR") != nullptr || lookup("MASTER_PORT") != nullptr;
  if (!launched) return environment;
  FT_RETURN_IF_ERROR(ReadRank(lookup, &environment));
  FT_RETURN_IF_ERROR(CheckOneRankOfPod(lookup, environment));
  FT_RETURN_IF_ERROR(ReadPlacement(lookup, &environment));
  FT_RETURN_IF_ERROR(ReadStore(lookup, &environment));
  FT_RETURN_IF_ERROR(ReadElastic(lookup, &environment));
  return environment;
}

absl::StatusOr<LaunchEnvironment> LaunchEnvironmentOfProcess() {
  return ParseLaunchEnvironment([](const char* name) -> const char* { return std::getenv(name); }, PeerOf);
}

}  // namespace ft
