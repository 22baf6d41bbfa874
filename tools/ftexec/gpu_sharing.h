// Whether several ranks may compute on one GPU, and whether they do.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "runtime/collective/rendezvous/peer_info.h"

namespace ft {

struct Flags;

// What NCCL's own variable for it says, NCCL_MULTI_RANK_GPU_ENABLE: the default of --share-gpus.
bool NcclMayShareGpus();

// Tells NCCL what --share-gpus says. To be called before there are other threads.
void TellNcclOfSharing(const Flags& flags);

// Ranks that have met. Errors: FailedPrecondition, in the same words on all ranks, when some of them compute
// on one GPU of one machine and may not: they are named, with the GPU. `nccl_version`: as NCCL numbers them,
// 22809 for 2.28.9; 0 when it is not known.
absl::Status CheckSharing(const std::vector<PeerInfo>& peers, bool may_share, int nccl_version);

}  // namespace ft
