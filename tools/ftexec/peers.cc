#include "tools/ftexec/peers.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/regular_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/thread.h"
#include "tools/ftexec/address_space.h"

namespace ft {
namespace {

// Streams, the watch over peers, the store, Gloo.
constexpr int kOtherThreads = 8;

// Held by one rank of the host at a time. What others may hold as well is not waited for without end: after
// two seconds a rank goes on without.
OpenFile LockHost() {
  OpenFile lock(open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int tries = 0; tries < 200 && flock(lock.fd(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
       ++tries)
    absl::SleepFor(absl::Milliseconds(10));
  return lock;
}

}  // namespace

// Each stream that runs kernels has a team of its own. A limit is on all ranks of a host together, so each
// looks for room for all of them, one after the other: at the same time they could refuse what there is. None
// starts a team before all have looked, as the meeting lies between.
absl::Status ProbeTeam(const Job& job, const RankDevice& device) {
  if (!device.is_cpu()) return absl::OkStatus();
  const int own = job.threads + kOtherThreads;
  const OpenFile lock = LockHost();
  FT_RETURN_IF_ERROR(ProbeProcesses("to compute", job.environment.local_world_size * own));
  FT_RETURN_IF_ERROR(ProbeThreads("to compute", own));
  return CheckAddressSpace(job.threads);
}

absl::Status Meet(const Flags& flags, const Job& job, RankDevice& device, Peers& peers) {
  const RendezvousOptions options{.fingerprint = Fingerprint(flags, job),
                                  .label = FingerprintLabel(flags, job),
                                  .instruction_set = std::string(device.best_instruction_set()),
                                  .timeout = flags.timeout()};
  FT_ASSIGN_OR_RETURN(peers.rendezvous, Rendezvous::Join(job.environment, options));
  FT_RETURN_IF_ERROR(device.SettleInstructionSet(peers.rendezvous->peers()));
  FT_ASSIGN_OR_RETURN(peers.monitor, PeerMonitor::Start(*peers.rendezvous));
  return Connect(flags, job, device, peers);
}

absl::Status Connect(const Flags& flags, const Job& job, const RankDevice& device, Peers& peers) {
  CommunicatorOptions communicators;
  communicators.cuda = device.cuda_side();
  communicators.deterministic = flags.cuda.platform.deterministic;
  FT_ASSIGN_OR_RETURN(peers.backend,
                      ResolveBackend(*peers.rendezvous, flags.backend, communicators.cuda.has_value()));
  communicators.backend = peers.backend;
  communicators.timeout = flags.timeout();
  communicators.threads_per_rank = job.threads;
  communicators.interrupted = [monitor = peers.monitor.get()] { return monitor->status(); };
  communicators.link = flags.emulated_link;
  FT_ASSIGN_OR_RETURN(peers.communicators,
                      CreatePlanCommunicators(*peers.rendezvous, job.plan(), job.bound.mesh, communicators));
  return absl::OkStatus();
}

absl::Status TellPeers(PeerMonitor& monitor, const absl::Status& status) {
  const absl::Status explained = monitor.Explain(status);
  monitor.Fail(std::string(explained.message()));
  return explained;
}

}  // namespace ft
