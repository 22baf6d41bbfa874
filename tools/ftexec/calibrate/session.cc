#include "tools/ftexec/calibrate/session.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/create.h"
#include "tools/ftexec/peers.h"

namespace ft {
namespace {

constexpr int kTimings = 9;
constexpr double kMostRuns = 4096;  // of the commands, in a repeat
constexpr CollectiveLabel kLabel{.name = "calibration"};

std::vector<std::string> HostsOf(const Rendezvous& rendezvous) {
  std::vector<std::string> hosts;
  for (const PeerInfo& peer : rendezvous.peers()) hosts.push_back(peer.host_id);
  return hosts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CalibrationSession>> CalibrationSession::Meet(const Flags& flags, Job& job,
                                                                             const NcclSource& load_nccl,
                                                                             ProcessGuard& guard,
                                                                             const std::string& fingerprint) {
  auto session = absl::WrapUnique(new CalibrationSession(job, guard));
  FT_ASSIGN_OR_RETURN(session->device_, RankDevice::Open(flags, job, load_nccl));
  RankDevice& device = *session->device_;
  const RendezvousOptions options{.fingerprint = fingerprint,
                                  .label = "a calibration",
                                  .instruction_set = std::string(device.best_instruction_set()),
                                  .gpu = device.gpu(),
                                  .gpu_page_bytes = device.gpu_page_bytes(),
                                  .timeout = flags.timeout};
  FT_ASSIGN_OR_RETURN(session->rendezvous_, Rendezvous::Join(job.environment, options));
  FT_RETURN_IF_ERROR(device.CheckGpus(session->rendezvous_->peers()));
  FT_RETURN_IF_ERROR(device.SettleInstructionSet(session->rendezvous_->peers()));
  FT_ASSIGN_OR_RETURN(session->monitor_, PeerMonitor::Start(*session->rendezvous_));
  FT_RETURN_IF_ERROR(session->Connect(flags));
  guard.OnCancel([raw = session.get()](const absl::Status& reason) { raw->Cancel(reason); });
  session->monitor_->OnLoss(
      [raw = session.get()](const absl::Status& reason) { raw->guard_.PeerLost(reason); });
  return session;
}

CalibrationSession::~CalibrationSession() {
  guard_.OnCancel({});
  if (monitor_ != nullptr) monitor_->OnLoss({});
}

absl::Status CalibrationSession::Connect(const Flags& flags) {
  CommunicatorOptions options;
  options.cuda = device_->cuda_side();
  options.deterministic = flags.deterministic;
  FT_ASSIGN_OR_RETURN(options.backend,
                      ResolveBackend(*rendezvous_, flags.comm_backend, options.cuda.has_value()));
  options.timeout = flags.timeout;
  options.threads_per_rank = job_.threads;
  options.interrupted = [monitor = monitor_.get()] { return monitor->status(); };
  options.link = flags.emulate_link;
  const int ranks = rendezvous_->world_size(), rank = rendezvous_->rank();
  const std::vector<std::string> hosts = HostsOf(*rendezvous_);
  const int on_node = ranks_on_node();
  const bool several = on_node < ranks && ranks % on_node == 0;
  const Mesh mesh =
      several ? Mesh{.replica = ranks / on_node, .shard = on_node} : Mesh{.replica = 1, .shard = ranks};
  std::vector<CommunicatorGroup> members;
  for (const proto::Axis axis : {proto::AXIS_SHARD, proto::AXIS_REPLICA, proto::AXIS_WORLD}) {
    // On one node shard and world are the same ranks, with one rank on each replica and world.
    const bool is_known =
        axis == proto::AXIS_WORLD && !groups_.empty() &&
        (AxisSize(mesh, proto::AXIS_SHARD) == ranks || AxisSize(mesh, proto::AXIS_REPLICA) == ranks);
    if (AxisSize(mesh, axis) < 2 || is_known) continue;
    groups_.push_back({.axis = axis, .layout = LayoutOnNodes(mesh, axis, hosts)});
    members.push_back({.ranks = AxisGroup(mesh, axis, rank), .gathers = true});
    members.push_back({.ranks = AxisGroup(mesh, axis, rank)});
  }
  // The host's own, where collectives can reach its memory.
  const bool shares_host = !options.cuda.has_value();
  if (shares_host) members.push_back({.ranks = AxisGroup(mesh, proto::AXIS_WORLD, rank)});
  FT_ASSIGN_OR_RETURN(auto made, CreateCommunicators(*rendezvous_, members, options));
  for (size_t i = 0; i < groups_.size(); ++i) {
    groups_[i].gathers = std::move(made[2 * i]);
    groups_[i].sums = std::move(made[2 * i + 1]);
  }
  if (shares_host) {
    host_ = std::move(made.back());
    return absl::OkStatus();
  }
  FT_ASSIGN_OR_RETURN(host_, CreateHostCommunicator(*rendezvous_, options));
  return absl::OkStatus();
}

int CalibrationSession::ranks_on_node() const {
  std::map<std::string, int> counts;
  int most = 1;
  for (const std::string& host : HostsOf(*rendezvous_)) most = std::max(most, ++counts[host]);
  return most;
}

void CalibrationSession::Cancel(const absl::Status& reason) {
  monitor_->Cancel(reason);
  host_->Abort(reason);
  for (const CalibrationGroup& group : groups_) {
    group.gathers->Abort(reason);
    group.sums->Abort(reason);
  }
  device().Cancel(reason);
}

absl::Status CalibrationSession::Barrier() const { return host_->Barrier(kLabel); }

absl::StatusOr<std::vector<std::vector<double>>> CalibrationSession::All(
    const std::vector<double>& own) const {
  const auto ranks = static_cast<size_t>(host_->size());
  std::vector<double> all(own.size() * ranks);
  FT_RETURN_IF_ERROR(host_->AllGather(own.data(), all.data(), own.size() * sizeof(double), kLabel));
  std::vector<std::vector<double>> by_rank;
  for (size_t r = 0; r < ranks; ++r)
    by_rank.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(r * own.size()),
                         all.begin() + static_cast<std::ptrdiff_t>((r + 1) * own.size()));
  return by_rank;
}

absl::StatusOr<Sample> CalibrationSession::Time(Stream& stream, absl::Span<const Command> commands,
                                                double seconds) const {
  const auto run = [&](size_t times) -> absl::StatusOr<double> {
    std::vector<Command> all;
    all.reserve(times * commands.size());
    for (size_t i = 0; i < times; ++i) all.insert(all.end(), commands.begin(), commands.end());
    FT_RETURN_IF_ERROR(Barrier());
    const absl::Time begin = absl::Now();
    stream.Enqueue(all);
    stream.Synchronize();
    FT_RETURN_IF_ERROR(device().status());
    return absl::ToDoubleSeconds(absl::Now() - begin) / static_cast<double>(times);
  };
  FT_RETURN_IF_ERROR(run(1).status());  // pages are touched, threads started, libraries set up
  FT_ASSIGN_OR_RETURN(const double trial, run(1));
  FT_ASSIGN_OR_RETURN(const auto trials, All({trial}));
  double slowest = 1e-9;
  for (const std::vector<double>& of_rank : trials) slowest = std::max(slowest, of_rank[0]);
  const double times = std::clamp(std::floor(seconds / kTimings / slowest), 1.0, kMostRuns);
  std::vector<double> own;
  for (int repeat = 0; repeat < kTimings; ++repeat) {
    FT_ASSIGN_OR_RETURN(own.emplace_back(), run(static_cast<size_t>(times)));
  }
  FT_ASSIGN_OR_RETURN(const auto all, All(own));
  std::vector<double> means(own.size(), 0);
  for (const std::vector<double>& of_rank : all)
    for (size_t i = 0; i < means.size(); ++i) means[i] += of_rank[i] / static_cast<double>(all.size());
  return Summarize(std::move(means));
}

absl::Status CalibrationSession::Tell(const absl::Status& status) const {
  return status.ok() ? status : TellPeers(*monitor_, status);
}

}  // namespace ft
