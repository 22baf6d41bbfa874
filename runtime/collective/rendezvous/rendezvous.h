// The ranks of a run find each other and agree that they are about to do the same thing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/collective/rendezvous/launch_environment.h"
#include "runtime/collective/rendezvous/peer_info.h"
#include "runtime/collective/rendezvous/store.h"

namespace ft {

class TcpStoreServer;

struct RendezvousOptions {
  // Must be equal on all ranks: the plan's hash and the options that all ranks have to share. Written as
  // "plan=12ab steps=5 lr=0.1", the error names the first setting that differs.
  std::string fingerprint;
  // The same for a person, for instance "plan.bin (sha256 12ab34cd)".
  std::string label;
  // The best that this rank can compute with; ranks may differ and learn of each other's. Empty where it does
  // not matter.
  std::string instruction_set;
  // The PCI address of the GPU that this rank computes on; empty: none, or not known.
  std::string gpu = {};
  // Of that GPU's memory as other processes can map it; 0: it has none, or there is no GPU.
  uint64_t gpu_page_bytes = 0;
  // How long ranks may wait for the last one to arrive.
  absl::Duration timeout = absl::Seconds(300);
};

class Rendezvous {
 public:
  // Blocks until all ranks are here. Errors: FailedPrecondition when the ranks' fingerprints differ (on every
  // rank), AlreadyExists when two processes claim one rank, Unavailable when ranks are missing at the
  // deadline (they are named) or the store cannot be reached. A run of one rank uses no network at all.
  static absl::StatusOr<std::unique_ptr<Rendezvous>> Join(const LaunchEnvironment& environment,
                                                          const RendezvousOptions& options);
  // The last of PeerMonitor, communicators and Rendezvous to go: rank 0 may be serving the store.
  ~Rendezvous();

  int rank() const { return rank_; }
  int world_size() const { return static_cast<int>(peers_.size()); }
  const std::vector<PeerInfo>& peers() const { return peers_; }  // by rank
  const PeerInfo& self() const { return peers_[rank_]; }
  bool one_host() const;  // all ranks share one host_id

  // Numbers this meeting: a restarted run gets another.
  int64_t generation() const { return generation_; }
  // A store whose keys belong to this generation alone; null for a run of one rank.
  Store* store() const { return store_.get(); }
  // The numeric address at which this rank found the store; empty without one.
  const std::string& master_address() const { return master_address_; }
  absl::Duration timeout() const { return timeout_; }

 private:
  Rendezvous();

  int rank_ = 0;
  int64_t generation_ = 0;
  absl::Duration timeout_;
  std::vector<PeerInfo> peers_;
  std::string master_address_;
  std::unique_ptr<TcpStoreServer> server_;
  std::unique_ptr<Store> connection_;
  std::unique_ptr<Store> store_;
  std::vector<std::string> farewells_;  // keys that appear when the others need this server no more
};

}  // namespace ft
