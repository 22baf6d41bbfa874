// What ranks tell each other when they meet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ft {

struct PeerInfo {
  int rank = 0;
  std::string hostname;
  // Equal exactly for ranks that can share memory through /dev/shm.
  std::string host_id;
  int64_t pid = 0;
  // Numeric address of this rank on the way to MASTER_ADDR, and one that other hosts can reach (empty: it has
  // none).
  std::string address;
  std::string external_address;
  std::string fingerprint;  // what this rank is about to run, see RendezvousOptions
  std::string label;
  int restart_count = 0;
  std::string instruction_set;  // see RendezvousOptions
  // Equal for ranks that run on one booted kernel, in containers of their own or not.
  std::string machine;
  std::string gpu;              // see RendezvousOptions
  uint64_t gpu_page_bytes = 0;  // see RendezvousOptions
};

// As text and back. Errors: Internal for text of another kind.
std::string EncodePeers(const std::vector<PeerInfo>& peers);
absl::StatusOr<std::vector<PeerInfo>> DecodePeers(absl::string_view text);

// "pid 17 on node-a"
std::string Whereabouts(const PeerInfo& peer);

}  // namespace ft
