#include "tools/ftexec/gpu_sharing.h"

#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/ranks_text.h"
#include "runtime/collective/nccl/nccl_api.h"
#include "tools/ftexec/flags.h"

namespace ft {
namespace {

constexpr char kVariable[] = "NCCL_MULTI_RANK_GPU_ENABLE";
constexpr int kFirstThatShares = 23000;

// "ranks 0,1 compute on one GPU, 0000:3B:00.0 of node-a", and how many other GPUs are shared.
std::string WhoShares(const std::vector<PeerInfo>& peers, const std::vector<int>& ranks, size_t others) {
  const PeerInfo& first = peers[static_cast<size_t>(ranks.front())];
  std::string text =
      absl::StrCat(RanksText(ranks), " compute on one GPU, ", first.gpu, " of ", first.hostname);
  if (others > 0)
    absl::StrAppend(&text, " (and ", others, " other ", others == 1 ? "GPU is" : "GPUs are", " shared)");
  return text;
}

}  // namespace

bool NcclMayShareGpus() {
  const char* enabled = std::getenv(kVariable);
  return enabled != nullptr && std::string_view(enabled) == "1";
}

void TellNcclOfSharing(const Flags& flags) {
  if (flags.device != DeviceKind::kCuda) return;
  if (flags.share_gpus)
    setenv(kVariable, "1", 1);
  else
    unsetenv(kVariable);
}

absl::Status CheckSharing(const std::vector<PeerInfo>& peers, bool may_share, int nccl_version) {
  if (may_share && (nccl_version == 0 || nccl_version >= kFirstThatShares)) return absl::OkStatus();
  std::map<std::pair<std::string, std::string>, std::vector<int>> ranks_by_gpu;
  for (const PeerInfo& peer : peers) {
    if (!peer.gpu.empty()) ranks_by_gpu[{peer.machine, peer.gpu}].push_back(peer.rank);
  }
  const std::vector<int>* shared = nullptr;  // of the GPU with the lowest rank
  size_t count = 0;
  for (const auto& [gpu, ranks] : ranks_by_gpu) {
    if (ranks.size() == 1) continue;
    ++count;
    if (shared == nullptr || ranks.front() < shared->front()) shared = &ranks;
  }
  if (shared == nullptr) return absl::OkStatus();
  const std::string who = WhoShares(peers, *shared, count - 1);
  if (may_share) {
    return absl::FailedPreconditionError(absl::StrCat(who, ", which NCCL ", nccl::VersionText(nccl_version),
                                                      " does not let them: NCCL 2.30 or newer does"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(who,
                   "; start one rank for each GPU, show each rank another (CUDA_VISIBLE_DEVICES), or let "
                   "them share with --share-gpus=on (NCCL 2.30 or newer)"));
}

}  // namespace ft
