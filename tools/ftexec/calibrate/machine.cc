#include "tools/ftexec/calibrate/machine.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "runtime/base/status_macros.h"
#include "tools/ftexec/calibrate/kernel_bench.h"
#include "tools/ftexec/calibrate/kernels.h"
#include "tools/ftexec/calibrate/links.h"
#include "tools/ftexec/calibrate/products.h"

namespace ft {
namespace {

constexpr uint64_t kCpuBytes = uint64_t{320} << 20, kGpuBytes = uint64_t{2} << 30;
constexpr double kLargestSpread = 0.1;

// Parts of the time that each measurement gets; together 1.
constexpr double kOfReference = 0.02, kOfLatency = 0.02, kOfProducts = 0.2, kOfAttention = 0.12,
                 kOfMemory = 0.08, kOfCopies = 0.05, kOfCollectives = 0.15, kOfOverlap = 0.08,
                 kOfSustained = 0.26;

// What ranks that were not here cannot show: links as the nominal machines of runtime/targets have them, the
// copies of shared memory and NVLink, Ethernet of 25 Gb/s and InfiniBand.
struct NominalLink {
  double bytes_per_s, latency_s;
};
constexpr NominalLink kCpuNode{2.5e9, 20e-6}, kCpuNetwork{0.35e9, 50e-6};
constexpr NominalLink kGpuNode{340e9, 4e-6}, kGpuNetwork{42e9, 4e-6};

void SetLink(const NominalLink& nominal, Target::Link& link) {
  link.set_bytes_per_s(nominal.bytes_per_s);
  link.set_latency_s(nominal.latency_s);
}

Target Nominal(bool is_cpu) {
  Target target;
  target.set_cuda(!is_cpu);
  SetLink(is_cpu ? kCpuNode : kGpuNode, *target.mutable_node());
  SetLink(is_cpu ? kCpuNetwork : kGpuNetwork, *target.mutable_network());
  return target;
}

void SetPeaks(const Device& device, Target& target) {
  const std::pair<DType, Target::Rate*> rates[] = {{DType::kF32, target.mutable_f32()},
                                                   {DType::kBF16, target.mutable_bf16()},
                                                   {DType::kF16, target.mutable_f16()}};
  for (const auto& [dtype, rate] : rates)
    if (const double peak = device.peak_flops(dtype); peak > rate->reached()) rate->set_peak(peak);
}

}  // namespace

absl::StatusOr<Target> MeasureMachine(const CalibrationSession& session, double seconds) {
  Target target = Nominal(session.is_cpu());
  target.set_ranks_per_node(static_cast<uint32_t>(session.ranks_on_node()));
  target.set_memory_bytes(session.device().memory_bytes() >> 20 << 20);  // whole MiB, as files have it
  Target::Measured* measured = target.mutable_measured();
  measured->set_ranks_on_node(target.ranks_per_node());
  measured->set_threads(static_cast<uint32_t>(session.job().threads));
  measured->set_instruction_set(std::string(session.rank_device().instruction_set()));
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<KernelBench> bench,
                      KernelBench::Create(session, session.is_cpu() ? kCpuBytes : kGpuBytes));
  FT_ASSIGN_OR_RETURN(const Sample before, TimeReference(*bench, kOfReference * seconds));
  FT_RETURN_IF_ERROR(MeasureLatency(*bench, kOfLatency * seconds, target));
  FT_RETURN_IF_ERROR(MeasureProducts(*bench, kOfProducts * seconds, target));
  FT_RETURN_IF_ERROR(MeasureAttention(*bench, kOfAttention * seconds, target));
  FT_RETURN_IF_ERROR(MeasureMemory(*bench, kOfMemory * seconds, target));
  FT_RETURN_IF_ERROR(MeasureCopies(session, kOfCopies * seconds, target));
  FT_RETURN_IF_ERROR(MeasureCollectives(session, kOfCollectives * seconds, target));
  FT_RETURN_IF_ERROR(MeasureOverlap(*bench, kOfOverlap * seconds, target));
  FT_RETURN_IF_ERROR(MeasureSustained(*bench, kOfSustained * seconds, target));
  FT_ASSIGN_OR_RETURN(const Sample after, TimeReference(*bench, kOfReference * seconds));
  measured->set_drift(std::min(kMostSpread, std::abs(after.seconds / before.seconds - 1)));
  SetPeaks(session.device(), target);
  return target;
}

std::string DoubtOf(const Target& target, JustMeasured what) {
  const Target::Measured& measured = target.measured();
  const bool of_machine = what == JustMeasured::kMachine;
  const double spread =
      of_machine
          ? std::max({measured.attention(), measured.memory(), measured.collectives(), measured.copies()})
          : measured.kernels();
  std::vector<std::string> signs;
  if (of_machine && measured.drift() > kQuiet)
    signs.push_back(
        fmt::format("one product took {:.0f}% more or less after than before", measured.drift() * 100));
  if (spread > kLargestSpread) signs.push_back(fmt::format("repeats spread by {:.0f}%", spread * 100));
  const char* doubt = signs.empty() ? "this machine was not quiet, or no form fits its products"
                                    : "this machine was not quiet";
  if (of_machine && measured.products() > kLargestSpread)
    signs.push_back(
        fmt::format("products are {:.0f}% off what is fitted to them", measured.products() * 100));
  if (signs.empty()) return "";
  return fmt::format("{}: {}; measure again when nothing else runs", doubt, fmt::join(signs, ", "));
}

}  // namespace ft
