#include "runtime/plan/verify_target_parts.h"

#include <set>
#include <string>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/target.h"
#include "runtime/plan/verify_transfers.h"

namespace ft {
namespace {

using Points = google::protobuf::RepeatedPtrField<Target::Point>;

constexpr uint32_t kMostExtent = 65536;

struct Range {
  double low, high;
};
constexpr Range kRates{.low = 1, .high = 1e24}, kSizes{.low = 1e-3, .high = 1e24};
constexpr Range kParts{.low = 1e-3, .high = 1}, kLonger{.low = 0, .high = 10}, kTimes{.low = 0, .high = 1000};

// Written so that NaN fails.
bool IsWithin(double value, const Range& range) { return value >= range.low && value <= range.high; }

absl::Status Impossible(const std::string& figure, double value) {
  return absl::InvalidArgumentError(
      absl::StrCat("a target whose ", figure, " is ", value, " is not possible"));
}

absl::Status VerifyValue(const std::string& figure, double value, const Range& range) {
  return IsWithin(value, range) ? absl::OkStatus() : Impossible(figure, value);
}

absl::Status VerifyCurve(const std::string& figure, const Points& points, const Range& values) {
  if (points.size() > kMostPoints)
    return absl::InvalidArgumentError(
        absl::StrCat("a target with ", points.size(), " points of ", figure, " is not possible"));
  double before = 0;
  for (const Target::Point& point : points) {
    FT_RETURN_IF_ERROR(VerifyValue(absl::StrCat("place of a point of ", figure), point.at(), kSizes));
    if (point.at() <= before)
      return absl::InvalidArgumentError(absl::StrCat("a target whose points of ", figure,
                                                     " do not ascend, as ", before, " and ", point.at(),
                                                     " do not, is not possible"));
    FT_RETURN_IF_ERROR(VerifyValue(absl::StrCat(figure, " at ", point.at()), point.value(), values));
    before = point.at();
  }
  return absl::OkStatus();
}

absl::Status VerifyProducts(const Target::Products& products) {
  const std::pair<const char*, double> halves[] = {{"half_k", products.half_k()},
                                                   {"half_rows", products.half_rows()},
                                                   {"half_columns", products.half_columns()}};
  for (const auto& [name, half] : halves)
    FT_RETURN_IF_ERROR(VerifyValue(absl::StrCat("products.", name), half, {.low = 0, .high = 1e6}));
  FT_RETURN_IF_ERROR(
      VerifyValue("products.multiprocessors", products.multiprocessors(), {.low = 0, .high = kMostExtent}));
  if (products.multiprocessors() == 0) return absl::OkStatus();
  const Range tile{.low = 1, .high = kMostExtent};
  FT_RETURN_IF_ERROR(VerifyValue("products.tile_rows", products.tile_rows(), tile));
  return VerifyValue("products.tile_columns", products.tile_columns(), tile);
}

absl::Status VerifyAttention(const Target& target) {
  uint32_t before = 0;
  bool f32 = false;
  for (const Target::Attention& rates : target.attention()) {
    if (rates.f32() && !f32) before = 0;
    if (rates.head_size() <= before || (f32 && !rates.f32()) || rates.head_size() > kMostExtent)
      return Impossible("attention's next head size", rates.head_size());
    before = rates.head_size();
    f32 = rates.f32();
    const std::string name = absl::StrCat("attention.", f32 ? "fp32." : "", rates.head_size());
    if (rates.forward().empty() || rates.backward().empty())
      return absl::InvalidArgumentError(
          absl::StrCat("a target with ", name, " in one direction alone is not possible"));
    FT_RETURN_IF_ERROR(VerifyCurve(name + ".forward", rates.forward(), kRates));
    FT_RETURN_IF_ERROR(VerifyCurve(name + ".backward", rates.backward(), kRates));
  }
  return absl::OkStatus();
}

// Kinds of collectives that are measured apart.
bool IsMeasured(proto::Opcode opcode) { return IsCollective(opcode) && opcode != proto::ALL_TO_ALL; }

std::string NameOf(proto::Opcode opcode) { return absl::AsciiStrToLower(proto::Opcode_Name(opcode)); }

absl::Status VerifyCollectives(const Target& target) {
  std::set<std::tuple<int, uint32_t, uint32_t>> seen;
  for (const Target::Collective& measured : target.collectives()) {
    const uint32_t nodes = measured.nodes(), ranks = measured.ranks_on_node();
    if (!IsMeasured(measured.opcode())) return Impossible("measured collective's kind", measured.opcode());
    const std::string name = absl::StrCat("collectives.", NameOf(measured.opcode()), ".", nodes, "x", ranks);
    if (nodes < 1 || nodes > kMostExtent || ranks < 1 || ranks > kMostRanksOnNode || nodes * ranks < 2 ||
        measured.bytes_per_s().empty() || !seen.emplace(measured.opcode(), nodes, ranks).second)
      return absl::InvalidArgumentError(
          absl::StrCat("a target with ", name, " (", measured.bytes_per_s_size(),
                       " points; each group of at least two ranks once) is not possible"));
    FT_RETURN_IF_ERROR(VerifyCurve(name, measured.bytes_per_s(), kRates));
  }
  return absl::OkStatus();
}

absl::Status VerifyOverlaps(const Target& target) {
  std::set<int> seen;
  for (const Target::Overlap& overlap : target.overlaps()) {
    if (!(IsMeasured(overlap.opcode()) || overlap.opcode() == proto::COPY) ||
        !seen.insert(overlap.opcode()).second)
      return Impossible("overlap's next kind", overlap.opcode());
    const std::string name = "overlap." + NameOf(overlap.opcode());
    FT_RETURN_IF_ERROR(VerifyValue(name + ".kernels", overlap.kernels(), kLonger));
    FT_RETURN_IF_ERROR(VerifyValue(name + ".transfer", overlap.transfer(), kLonger));
    FT_RETURN_IF_ERROR(
        VerifyValue(name + ".multiprocessors", overlap.multiprocessors(), {.low = 0, .high = kMostExtent}));
  }
  return absl::OkStatus();
}

absl::Status VerifyStack(const Target::Stack& stack) {
  FT_RETURN_IF_ERROR(VerifyValue("stack.launch_s", stack.launch_s(), {.low = 0, .high = 1e6}));
  FT_RETURN_IF_ERROR(VerifyValue("stack.launches", stack.launches(), kTimes));
  FT_RETURN_IF_ERROR(VerifyValue("stack.elementwise_bytes", stack.elementwise_bytes(), kTimes));
  FT_RETURN_IF_ERROR(VerifyValue("stack.update_bytes", stack.update_bytes(), kTimes));
  FT_RETURN_IF_ERROR(VerifyValue("stack.reduction_bytes", stack.reduction_bytes(), kTimes));
  return VerifyValue("stack.logit_bytes", stack.logit_bytes(), kTimes);
}

absl::Status VerifyMeasured(const Target::Measured& measured) {
  FT_RETURN_IF_ERROR(
      VerifyValue("measured.ranks", measured.ranks_on_node(), {.low = 1, .high = kMostRanksOnNode}));
  FT_RETURN_IF_ERROR(VerifyValue("measured.threads", measured.threads(), {.low = 1, .high = kMostExtent}));
  if (measured.instruction_set().size() > kLongestTargetName)
    return Impossible("measured.instruction_set's length",
                      static_cast<double>(measured.instruction_set().size()));
  const bool is_apart = measured.timed_ranks_on_node() != 0;
  FT_RETURN_IF_ERROR(VerifyValue("measured.timed.ranks", measured.timed_ranks_on_node(),
                                 {.low = 0, .high = kMostRanksOnNode}));
  FT_RETURN_IF_ERROR(
      VerifyValue("measured.timed.threads", measured.timed_threads(),
                  {.low = is_apart ? 1.0 : 0.0, .high = is_apart ? double{kMostExtent} : 0.0}));
  if (measured.timed_instruction_set().size() > (is_apart ? kLongestTargetName : 0))
    return Impossible("measured.timed.instruction_set's length",
                      static_cast<double>(measured.timed_instruction_set().size()));
  const std::pair<const char*, double> spreads[] = {{"drift", measured.drift()},
                                                    {"products", measured.products()},
                                                    {"attention", measured.attention()},
                                                    {"memory", measured.memory()},
                                                    {"collectives", measured.collectives()},
                                                    {"copies", measured.copies()},
                                                    {"kernels", measured.kernels()}};
  for (const auto& [name, spread] : spreads)
    FT_RETURN_IF_ERROR(VerifyValue(absl::StrCat("measured.", name), spread, kLonger));
  return absl::OkStatus();
}

absl::Status VerifyTimedKernels(const Target& target) {
  const Target::TimedKernel* before = nullptr;
  for (const Target::TimedKernel& kernel : target.timed_kernels()) {
    const std::string name = absl::StrCat("kernels.timed.", absl::Hex(kernel.key(), absl::kZeroPad16));
    if (before != nullptr && kernel.key() <= before->key())
      return absl::InvalidArgumentError(
          absl::StrCat("a target whose ", name, " does not ascend is not possible"));
    FT_RETURN_IF_ERROR(VerifyValue(name + ".seconds", kernel.seconds(), {.low = 0.9e-12, .high = 1e6}));
    FT_RETURN_IF_ERROR(VerifyValue(name + ".share", kernel.share(), {.low = 1e-9, .high = 1e3}));
    FT_RETURN_IF_ERROR(VerifyValue(name + ".spread", kernel.spread(), kLonger));
    before = &kernel;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyTargetParts(const proto::Target& target) {
  if (target.ByteSizeLong() > kMostTargetBytes)
    return absl::InvalidArgumentError(absl::StrCat(
        "a target of ", target.ByteSizeLong(), " bytes is not possible, of ", kMostTargetBytes, " it is"));
  FT_RETURN_IF_ERROR(VerifyProducts(target.products()));
  FT_RETURN_IF_ERROR(VerifyAttention(target));
  FT_RETURN_IF_ERROR(VerifyCurve("memory", target.memory(), kRates));
  FT_RETURN_IF_ERROR(VerifyCollectives(target));
  FT_RETURN_IF_ERROR(VerifyOverlaps(target));
  FT_RETURN_IF_ERROR(VerifyCurve("node_ramp", target.node_ramp(), kParts));
  FT_RETURN_IF_ERROR(VerifyCurve("network_ramp", target.network_ramp(), kParts));
  FT_RETURN_IF_ERROR(VerifyStack(target.stack()));
  if (target.sustained() != 0) FT_RETURN_IF_ERROR(VerifyValue("sustained", target.sustained(), kParts));
  FT_RETURN_IF_ERROR(VerifyCurve("jitter", target.jitter(), kLonger));
  if (target.has_measured()) FT_RETURN_IF_ERROR(VerifyMeasured(target.measured()));
  return VerifyTimedKernels(target);
}

}  // namespace ft
