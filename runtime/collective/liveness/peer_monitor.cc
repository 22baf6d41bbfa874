#include "runtime/collective/liveness/peer_monitor.h"

#include <sys/eventfd.h>

#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/liveness/peer_links.h"
#include "runtime/collective/liveness/star.h"

namespace ft {

// The connections, and who listens to them.
class PeerMonitor::Impl {
 public:
  Impl(const Rendezvous& rendezvous, std::vector<Fd> connections, Fd wake)
      : links(rendezvous, std::move(connections), std::move(wake),
              [this](size_t rank, PeerMessageType type, absl::string_view text) { Hear(rank, type, text); }),
        agreement(links),
        wishes(links),
        step_times(links) {}
  // Its thread uses what stands behind it.
  ~Impl() { links.StopListening(); }

  void Hear(size_t rank, PeerMessageType type, absl::string_view text) {
    agreement.Hear(rank, type, text);
    wishes.Hear(rank, type, text);
    step_times.Hear(rank, type, text);
  }

  PeerLinks links;
  Agreement agreement;
  Wishes wishes;
  StepTimes step_times;
};

absl::StatusOr<std::unique_ptr<PeerMonitor>> PeerMonitor::Start(const Rendezvous& rendezvous) {
  std::vector<Fd> connections;
  Fd wake;
  if (rendezvous.world_size() > 1) {
    FT_ASSIGN_OR_RETURN(connections, ConnectStar(rendezvous));
    wake = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake.valid()) return ErrnoStatus("eventfd");
  }
  auto impl = std::make_unique<Impl>(rendezvous, std::move(connections), std::move(wake));
  FT_RETURN_IF_ERROR(impl->links.StartListening());
  return std::unique_ptr<PeerMonitor>(new PeerMonitor(std::move(impl)));
}

PeerMonitor::PeerMonitor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PeerMonitor::~PeerMonitor() = default;
void PeerMonitor::OnLoss(std::function<void(const absl::Status&)> on_loss) {
  impl_->links.OnLoss(std::move(on_loss));
}
absl::Status PeerMonitor::status() const { return impl_->links.status(); }
absl::Status PeerMonitor::Explain(const absl::Status& error, absl::Duration patience) {
  return impl_->links.Explain(error, patience);
}
void PeerMonitor::Fail(std::string_view message) {
  impl_->links.Fail(absl::string_view(message.data(), message.size()));
}
absl::Status PeerMonitor::Goodbye(absl::Duration patience) { return impl_->links.Goodbye(patience); }
absl::StatusOr<std::string> PeerMonitor::Agree(std::string_view topic, uint64_t number, std::string payload,
                                               Agreement::Decide decide, absl::Duration timeout) {
  return impl_->agreement.Agree(absl::string_view(topic.data(), topic.size()), number, std::move(payload),
                                decide, timeout);
}
Agreement::Counts PeerMonitor::agreement_counts() const { return impl_->agreement.counts(); }
Wishes& PeerMonitor::wishes() { return impl_->wishes; }
StepTimes& PeerMonitor::step_times() { return impl_->step_times; }
void PeerMonitor::Cancel(const absl::Status& reason) { impl_->links.Cancel(reason); }

}  // namespace ft
