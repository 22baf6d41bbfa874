#include "tools/ftexec/peers.h"

#include "runtime/base/status_macros.h"
#include "runtime/collective/liveness/agreement.h"

namespace ft {

absl::Status Meet(const Flags& flags, const Job& job, RankDevice& device, FailureReport& report,
                  Peers& peers) {
  report.activity().Enter(Activity::kMeeting);
  const RendezvousOptions options{.fingerprint = Fingerprint(flags, job),
                                  .label = FingerprintLabel(flags, job),
                                  .instruction_set = std::string(device.best_instruction_set()),
                                  .gpu = device.gpu(),
                                  .gpu_page_bytes = device.gpu_page_bytes(),
                                  .timeout = flags.timeout};
  FT_ASSIGN_OR_RETURN(peers.rendezvous, Rendezvous::Join(job.environment, options));
  report.SetMeeting(*peers.rendezvous);
  if (const absl::Status status = device.CheckGpus(peers.rendezvous->peers()); !status.ok())
    return device.may_share() ? status : KnownToAll(status);  // NCCLs of ranks may be of different versions
  FT_RETURN_IF_ERROR(device.SettleInstructionSet(peers.rendezvous->peers()));
  FT_ASSIGN_OR_RETURN(peers.monitor, PeerMonitor::Start(*peers.rendezvous));
  return Connect(flags, job, device, peers);
}

absl::Status Connect(const Flags& flags, const Job& job, const RankDevice& device, Peers& peers) {
  CommunicatorOptions communicators;
  communicators.cuda = device.cuda_side();
  communicators.deterministic = flags.deterministic;
  FT_ASSIGN_OR_RETURN(peers.backend,
                      ResolveBackend(*peers.rendezvous, flags.comm_backend, communicators.cuda.has_value()));
  communicators.backend = peers.backend;
  communicators.timeout = flags.timeout;
  communicators.threads_per_rank = job.threads;
  communicators.interrupted = [monitor = peers.monitor.get()] { return monitor->status(); };
  communicators.link = flags.emulate_link;
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
