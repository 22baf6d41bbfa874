#include "tools/ftexec/calibrate/links.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/status_macros.h"
#include "runtime/cost/curve.h"
#include "runtime/cost/transfers.h"
#include "runtime/executor/link_probe.h"
#include "tools/ftexec/calibrate/products.h"

namespace ft {
namespace {

constexpr proto::Opcode kKinds[] = {proto::ALL_GATHER, proto::REDUCE_SCATTER, proto::ALL_REDUCE};
constexpr uint64_t kSizes[] = {uint64_t{4} << 10,   uint64_t{32} << 10, uint64_t{128} << 10,
                               uint64_t{512} << 10, uint64_t{2} << 20,  uint64_t{8} << 20,
                               uint64_t{32} << 20,  uint64_t{64} << 20};
constexpr uint64_t kBesideProducts = uint64_t{8}
                                     << 20;  // bytes of a collective that is timed beside a product

const CommandInfo kInfo{.title = "calibration", .category = "check", .instruction = -1};

absl::Status MeasureGroup(const CalibrationSession& session, const CalibrationGroup& group, double seconds,
                          std::vector<double>& spreads, Target& target) {
  // Of ranks that lie unevenly on nodes no file can say which they were.
  if (group.layout.most_on_node != group.layout.least_on_node) return absl::OkStatus();
  for (const proto::Opcode kind : kKinds) {
    FT_ASSIGN_OR_RETURN(const std::unique_ptr<LinkProbe> probe,
                        LinkProbe::Create(session.device(), group.Of(kind), kSizes[std::size(kSizes) - 1]));
    Target::Collective* measured = target.add_collectives();
    measured->set_opcode(kind);
    measured->set_nodes(static_cast<uint32_t>(group.layout.nodes));
    measured->set_ranks_on_node(static_cast<uint32_t>(group.layout.most_on_node));
    for (const uint64_t bytes : kSizes) {
      const LinkCall call{.opcode = kind, .dtype = DType::kF32, .bytes = bytes};
      const std::unique_ptr<HostTask> task = probe->TaskOf(call);
      const Command command = Command::Call(task.get(), &kInfo);
      FT_ASSIGN_OR_RETURN(const Sample sample,
                          session.Time(probe->stream(), absl::MakeConstSpan(&command, 1),
                                       seconds / (std::size(kKinds) * std::size(kSizes))));
      const auto whole = static_cast<double>(probe->WholeBytes(call));
      AddPoint(whole, whole / sample.seconds, *measured->mutable_bytes_per_s());
      spreads.push_back(sample.spread);
    }
    if (kind == proto::ALL_GATHER && (group.layout.nodes == 1 || group.layout.most_on_node == 1))
      SetLinkFrom(*measured, target);
  }
  return absl::OkStatus();
}

// Commands of a stream, run so many times.
struct Load {
  Stream& stream;
  absl::Span<const Command> commands;
  int times;
};

// Seconds of one run of the first load while the second, begun with it after a barrier, is under way.
absl::StatusOr<double> TimeFirst(const CalibrationSession& session, const Load& first, const Load& second) {
  const auto repeated = [](const Load& load) {
    std::vector<Command> all;
    for (int i = 0; i < load.times; ++i) all.insert(all.end(), load.commands.begin(), load.commands.end());
    return all;
  };
  const std::vector<Command> of_first = repeated(first), of_second = repeated(second);
  FT_RETURN_IF_ERROR(session.Barrier());
  const absl::Time begin = absl::Now();
  second.stream.Enqueue(of_second);
  first.stream.Enqueue(of_first);
  first.stream.Synchronize();
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin) / first.times;
  second.stream.Synchronize();
  FT_RETURN_IF_ERROR(session.device().status());
  return seconds;
}

// The median over repeats and the mean over ranks of what `one` says.
template <typename F>
absl::StatusOr<double> Repeated(const CalibrationSession& session, const F& one) {
  constexpr int kRepeats = 5;
  std::vector<double> own;
  for (int i = 0; i < kRepeats; ++i) {
    FT_ASSIGN_OR_RETURN(own.emplace_back(), one());
  }
  FT_ASSIGN_OR_RETURN(const auto all, session.All({MiddleOf(own)}));
  double sum = 0;
  for (const std::vector<double>& of_rank : all) sum += of_rank[0];
  return sum / static_cast<double>(all.size());
}

// How much longer a product takes beside transfers of a kind, and they beside it.
absl::Status MeasureBeside(KernelBench& bench, const std::vector<Command>& product, Stream& stream,
                           absl::Span<const Command> transfer, double seconds, proto::Opcode kind,
                           Target& target) {
  const CalibrationSession& session = bench.session();
  FT_ASSIGN_OR_RETURN(const Sample product_alone, session.Time(bench.stream(), product, seconds / 4));
  FT_ASSIGN_OR_RETURN(const Sample transfer_alone, session.Time(stream, transfer, seconds / 4));
  // Of the one that is timed as many as last a while; of the other enough to outlast them slowed down, too.
  constexpr double kLonger = 4;
  const double window = std::max({seconds / 40, product_alone.seconds, transfer_alone.seconds});
  const auto load_of = [&](bool transfers, double whole) -> Load {
    const double one = transfers ? transfer_alone.seconds : product_alone.seconds;
    return {transfers ? stream : bench.stream(), transfers ? transfer : absl::MakeConstSpan(product),
            std::max(1, static_cast<int>(whole / one))};
  };
  const auto beside = [&](bool transfers) {
    return Repeated(session, [&] {
      return TimeFirst(session, load_of(transfers, window), load_of(!transfers, kLonger * window));
    });
  };
  FT_ASSIGN_OR_RETURN(const double product_beside, beside(false));
  FT_ASSIGN_OR_RETURN(const double transfer_beside, beside(true));
  Target::Overlap* overlap = target.add_overlaps();
  overlap->set_opcode(kind);
  overlap->set_kernels(std::clamp(product_beside / product_alone.seconds - 1, 0.0, 10.0));
  overlap->set_transfer(std::clamp(transfer_beside / transfer_alone.seconds - 1, 0.0, 10.0));
  return absl::OkStatus();
}

// Copies between host and device, one way and back.
absl::Status MeasureBesideCopies(KernelBench& bench, const std::vector<Command>& product, double seconds,
                                 Target& target) {
  Device& device = bench.session().device();
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Memory> on_device, device.Allocate(kBesideProducts));
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Memory> on_host, device.AllocateHost(kBesideProducts));
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, device.CreateStream("copies", 1));
  const std::vector<CopyRegion> in = {{on_host->data(), on_device->data(), kBesideProducts}},
                                out = {{on_device->data(), on_host->data(), kBesideProducts}};
  const Command both[] = {Command::Copy(&in, &kInfo), Command::Copy(&out, &kInfo)};
  return MeasureBeside(bench, product, *stream, both, seconds, proto::COPY, target);
}

}  // namespace

absl::Status MeasureCollectives(const CalibrationSession& session, double seconds, Target& target) {
  std::vector<double> spreads;
  for (const CalibrationGroup& group : session.groups())
    FT_RETURN_IF_ERROR(MeasureGroup(session, group, seconds / static_cast<double>(session.groups().size()),
                                    spreads, target));
  target.mutable_measured()->set_collectives(MiddleOf(spreads));
  return absl::OkStatus();
}

absl::Status MeasureOverlap(KernelBench& bench, double seconds, Target& target) {
  const CalibrationSession& session = bench.session();
  FT_RETURN_IF_ERROR(AddReference(bench));
  const std::vector<Command> product = bench.commands();
  const bool alone = session.groups().empty();
  const double each = seconds / (alone ? 1 : std::size(kKinds) + 1);
  for (const proto::Opcode kind : kKinds) {
    if (alone) break;
    FT_ASSIGN_OR_RETURN(const std::unique_ptr<LinkProbe> probe,
                        LinkProbe::Create(session.device(), session.groups()[0].Of(kind), kBesideProducts));
    const std::unique_ptr<HostTask> task =
        probe->TaskOf({.opcode = kind, .dtype = DType::kF32, .bytes = kBesideProducts});
    const Command command = Command::Call(task.get(), &kInfo);
    FT_RETURN_IF_ERROR(
        MeasureBeside(bench, product, probe->stream(), absl::MakeConstSpan(&command, 1), each, kind, target));
  }
  FT_RETURN_IF_ERROR(MeasureBesideCopies(bench, product, each, target));
  return bench.Time(seconds / 120).status();  // forgets the product
}

}  // namespace ft
