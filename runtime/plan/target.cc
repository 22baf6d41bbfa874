#include "runtime/plan/target.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/verify_target_parts.h"

namespace ft {
namespace {

// Far beyond every machine, and far from overflow and underflow in times.
constexpr double kMostPerSecond = 1e24;
constexpr double kLeastPerSecond = 1;
constexpr double kMostLatency = 1e6;
constexpr uint64_t kMostMemory = uint64_t{1} << 60;
constexpr uint64_t kMostBeside = uint64_t{1} << 50;  // so that sums stay far from overflow
constexpr uint32_t kMostRanksPerNode = 1024;

absl::Status ImpossibleFigure(std::string_view figure, double value) {
  return absl::InvalidArgumentError(
      absl::StrCat("a target whose ", std::string(figure), " is ", value, " is not possible"));
}

// Written so that NaN fails.
absl::Status VerifyRate(std::string_view figure, double value) {
  return value >= kLeastPerSecond && value <= kMostPerSecond ? absl::OkStatus()
                                                             : ImpossibleFigure(figure, value);
}

absl::Status VerifyLatency(std::string_view figure, double value) {
  return value >= 0 && value <= kMostLatency ? absl::OkStatus() : ImpossibleFigure(figure, value);
}

absl::Status VerifyLink(const std::string& name, const Target::Link& link) {
  FT_RETURN_IF_ERROR(VerifyRate(name + ".bytes_per_s", link.bytes_per_s()));
  FT_RETURN_IF_ERROR(VerifyLatency(name + ".latency_s", link.latency_s()));
  return VerifyLatency(name + ".step_s", link.step_s());
}

std::string TextOf(uint32_t ranks, uint32_t threads, const std::string& instruction_set) {
  const auto count = [](uint32_t n, const char* what) {
    return absl::StrCat(n, " ", what, n == 1 ? "" : "s");
  };
  return absl::StrCat(count(ranks, "rank"), " a host, ", count(threads, "thread"), " each",
                      instruction_set.empty() ? "" : ", ", instruction_set);
}

}  // namespace

const Target::Rate& RateOf(const Target& target, proto::DType dtype) {
  return dtype == proto::BF16 ? target.bf16() : dtype == proto::F16 ? target.f16() : target.f32();
}

bool ExceedsPeak(const Target::Rate& rate) { return rate.peak() != 0 && rate.peak() < rate.reached(); }

std::string LayoutText(const Target::Measured& measured) {
  return TextOf(measured.ranks_on_node(), measured.threads(), measured.instruction_set());
}

std::string TimedLayoutText(const Target::Measured& measured) {
  return measured.timed_ranks_on_node() == 0
             ? LayoutText(measured)
             : TextOf(measured.timed_ranks_on_node(), measured.timed_threads(),
                      measured.timed_instruction_set());
}

const char* RateName(proto::DType dtype) {
  return dtype == proto::BF16 ? "bf16" : dtype == proto::F16 ? "fp16" : "fp32";
}

absl::Status VerifyTarget(const Target& target) {
  if (target.name().empty() || target.name().size() > kLongestTargetName)
    return absl::InvalidArgumentError(
        absl::StrCat("a target with a name of ", target.name().size(), " bytes is not possible"));
  if (target.ranks_per_node() < 1 || target.ranks_per_node() > kMostRanksPerNode)
    return ImpossibleFigure("ranks_per_node", target.ranks_per_node());
  if (target.memory_bytes() > kMostMemory)
    return ImpossibleFigure("memory_bytes", static_cast<double>(target.memory_bytes()));
  const std::pair<const char*, uint64_t> beside[] = {{"beside_bytes", target.beside_bytes()},
                                                     {"communicator_bytes", target.communicator_bytes()}};
  for (const auto& [name, bytes] : beside)
    if (bytes > kMostBeside) return ImpossibleFigure(name, static_cast<double>(bytes));
  const std::pair<const char*, const Target::Rate*> rates[] = {
      {"f32", &target.f32()}, {"bf16", &target.bf16()}, {"f16", &target.f16()}, {"float8", &target.float8()}};
  for (const auto& [name, rate] : rates) {
    if (rate == &target.float8() && !target.has_float8()) continue;
    FT_RETURN_IF_ERROR(VerifyRate(absl::StrCat(name, ".reached"), rate->reached()));
    if (rate->peak() != 0) FT_RETURN_IF_ERROR(VerifyRate(absl::StrCat(name, ".peak"), rate->peak()));
    if (ExceedsPeak(*rate)) {
      return absl::InvalidArgumentError(absl::StrCat("a target that reaches more in ", name, " (",
                                                     rate->reached(), " FLOP/s) than its peak (",
                                                     rate->peak(), ") is not possible"));
    }
  }
  FT_RETURN_IF_ERROR(VerifyRate("memory_bytes_per_s", target.memory_bytes_per_s()));
  if (target.host_memory_bytes_per_s() != 0)
    FT_RETURN_IF_ERROR(VerifyRate("host_memory_bytes_per_s", target.host_memory_bytes_per_s()));
  FT_RETURN_IF_ERROR(VerifyLatency("kernel_latency_s", target.kernel_latency_s()));
  FT_RETURN_IF_ERROR(VerifyLink("node", target.node()));
  FT_RETURN_IF_ERROR(VerifyLink("network", target.network()));
  FT_RETURN_IF_ERROR(VerifyLink("copies", target.copies()));
  return VerifyTargetParts(target);
}

}  // namespace ft
