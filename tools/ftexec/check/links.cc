#include "tools/ftexec/check/links.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fmt/format.h"
#include "runtime/base/ranks_text.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/liveness/step_times.h"
#include "runtime/cost/transfers.h"

namespace ft {
namespace {

constexpr double kSecondsOfATry = 0.05;
constexpr int64_t kMostCalls = 1000;
constexpr int kRepeats = 3;  // the best of so many: others may have had the machine meanwhile
// Costs are estimates, and cross-checked against published steps to within 70% (docs/targets.md).
constexpr double kTolerance = 2;

// Bytes that each rank sends, or receives.
double SentBytes(const LinkUse& use, uint64_t whole) {
  const double passes = use.opcode == proto::ALL_REDUCE ? 2 : 1;
  return passes * static_cast<double>(whole) * (use.ranks - 1) / use.ranks;
}

// Bytes a second beyond the latency; nullopt where that is most of the time.
std::optional<double> Rate(double sent, double seconds, double latency) {
  if (seconds <= 1.5 * latency) return std::nullopt;
  return sent / (seconds - latency);
}

std::string RateText(double bytes_per_s) {
  return bytes_per_s >= 1e8 ? fmt::format("{:.2f} GB/s", bytes_per_s * 1e-9)
                            : fmt::format("{:.2f} MB/s", bytes_per_s * 1e-6);
}

// "35.2 us at 16 bytes; 1.90 GB/s at 2.3 MiB". `seconds` by try; the first is the latency's.
std::string FiguresText(const LinkUse& use, absl::Span<const LinkTry> tries,
                        const std::vector<double>& seconds) {
  std::string text = fmt::format("{:.1f} us at {}", seconds[0] * 1e6, BytesText(tries[0].whole_bytes));
  for (size_t i = 1; i < tries.size(); ++i) {
    const auto rate = Rate(SentBytes(use, tries[i].whole_bytes), seconds[i], seconds[0]);
    const std::string size = BytesText(tries[i].whole_bytes);
    absl::StrAppend(&text, rate.has_value() ? fmt::format("; {} at {}", RateText(*rate), size)
                                            : fmt::format("; {:.1f} us at {}", seconds[i] * 1e6, size));
  }
  return text;
}

std::vector<double> Reckoned(const Target& target, proto::Opcode opcode, absl::Span<const LinkTry> tries,
                             const NodeLayout& layout) {
  std::vector<double> seconds;
  for (const LinkTry& each : tries)
    seconds.push_back(CollectiveSeconds(target, opcode, each.whole_bytes, layout));
  return seconds;
}

// Groups of ranks whose calls take much longer than those of others: their link is worse. Inside of a group
// all wait for each other, and take the same time.
std::string SlowGroups(const std::vector<double>& by_rank, const std::vector<int>& groups) {
  std::map<int, double> by_group;
  for (size_t rank = 0; rank < by_rank.size(); ++rank)
    by_group[groups[rank]] = std::max(by_group[groups[rank]], by_rank[rank]);
  std::vector<double> sorted;
  for (const auto& [group, seconds] : by_group) sorted.push_back(seconds);
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[(sorted.size() - 1) / 2];
  std::vector<int> slow;
  for (size_t rank = 0; rank < by_rank.size(); ++rank)
    if (by_group[groups[rank]] > SlowRank::kSlowFactor * median) slow.push_back(static_cast<int>(rank));
  if (slow.empty()) return "";
  return fmt::format("{} take up to {:.1f} times the median of all groups", RanksText(slow),
                     sorted.back() / median);
}

// How often each try of a use is called: as the slowest rank's trial says.
absl::StatusOr<std::vector<int64_t>> AgreeOnCounts(const AgreeFunction& agree, size_t use,
                                                   const std::vector<double>& trials) {
  const auto decide = [&](const std::vector<std::string>& by_rank) -> absl::StatusOr<std::string> {
    std::vector<double> slowest(trials.size(), 0);
    for (const std::string& text : by_rank) {
      FT_ASSIGN_OR_RETURN(const RankResults of_rank, DecodeResults(text));
      for (size_t i = 0; i < std::min(slowest.size(), of_rank.link_seconds.size()); ++i)
        slowest[i] = std::max(slowest[i], of_rank.link_seconds[i]);
    }
    RankResults counts;
    for (const double seconds : slowest) {
      const double calls = seconds > 0 ? kSecondsOfATry / seconds : static_cast<double>(kMostCalls);
      counts.link_seconds.push_back(std::floor(std::clamp(calls, 1.0, static_cast<double>(kMostCalls))));
    }
    return Encode(counts);
  };
  FT_ASSIGN_OR_RETURN(
      const std::string answer,
      agree("check: links", use, Encode(RankResults{.findings = {}, .link_seconds = trials}), decide));
  FT_ASSIGN_OR_RETURN(const RankResults counts, DecodeResults(answer));
  if (counts.link_seconds.size() != trials.size())
    return absl::InternalError("ranks check different links of the plan");
  return std::vector<int64_t>(counts.link_seconds.begin(), counts.link_seconds.end());
}

absl::Status MeasureUse(LinkProbe& probe, absl::Span<const LinkTry> tries, size_t use,
                        const AgreeFunction& agree, RankResults& results) {
  std::vector<double> trials;
  for (const LinkTry& each : tries) {
    FT_RETURN_IF_ERROR(probe.Measure(each.call, 1).status());  // pages are touched, connections made
    FT_ASSIGN_OR_RETURN(trials.emplace_back(), probe.Measure(each.call, 1));
  }
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, AgreeOnCounts(agree, use, trials));
  for (size_t i = 0; i < tries.size(); ++i) {
    double best = trials[i];
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      FT_ASSIGN_OR_RETURN(const double seconds,
                          probe.Measure(tries[i].call, std::max<int64_t>(1, counts[i])));
      best = std::min(best, seconds);
    }
    results.link_seconds.push_back(best);
  }
  return absl::OkStatus();
}

// Those of one use.
absl::Span<const LinkTry> TriesOf(const std::vector<LinkTry>& tries, size_t use) {
  const auto is_of = [use](const LinkTry& each) { return each.use == use; };
  const auto first = std::find_if(tries.begin(), tries.end(), is_of);
  const auto last = std::find_if_not(first, tries.end(), is_of);
  return absl::MakeConstSpan(tries).subspan(static_cast<size_t>(first - tries.begin()),
                                            static_cast<size_t>(last - first));
}

}  // namespace

std::vector<LinkTry> LinkTries(const std::vector<LinkUse>& uses, uint64_t most_bytes) {
  std::vector<LinkTry> tries;
  for (size_t i = 0; i < uses.size(); ++i) {
    const auto dtype = static_cast<DType>(uses[i].dtype);
    uint64_t before = 0;
    for (const uint64_t wanted : {uint64_t{0}, uses[i].typical_bytes, uses[i].largest_bytes}) {
      // As LinkProbe rounds it.
      const uint64_t unit =
          SizeOf(dtype) * (uses[i].opcode == proto::ALL_REDUCE ? 1 : static_cast<uint64_t>(uses[i].ranks));
      const uint64_t whole = std::max<uint64_t>(1, std::min(wanted, most_bytes) / unit) * unit;
      // What is nearly as large says nothing new.
      if (wanted > 0 && whole < 2 * before) continue;
      before = whole;
      tries.push_back({.use = i,
                       .call = {.opcode = uses[i].opcode, .dtype = dtype, .bytes = whole},
                       .whole_bytes = whole});
    }
  }
  return tries;
}

absl::Status MeasureLinks(Device& device, const CommunicatorTable& communicators,
                          const std::vector<LinkUse>& uses, const std::vector<LinkTry>& tries,
                          const AgreeFunction& agree, RankResults& results) {
  for (size_t i = 0; i < uses.size(); ++i) {
    const LinkUse& use = uses[i];
    Communicator* communicator = communicators.at(use.stream, use.axis_of_instruction);
    if (communicator == nullptr)
      return absl::InternalError(absl::StrCat("there is no communicator for ", NameOf(use)));
    const absl::Span<const LinkTry> of_use = TriesOf(tries, i);
    FT_ASSIGN_OR_RETURN(const auto probe,
                        LinkProbe::Create(device, *communicator, of_use.back().whole_bytes));
    const absl::Status checked = probe->CheckResult(of_use.back().call);
    if (absl::IsDataLoss(checked)) {
      Finding wrong = Failure(NameOf(use), checked);
      wrong.needed = "the right one";
      wrong.advice = "look at memory, network and driver of these ranks: they compute wrong sums";
      results.findings.push_back(std::move(wrong));
    } else {
      FT_RETURN_IF_ERROR(checked);
    }
    FT_RETURN_IF_ERROR(MeasureUse(*probe, of_use, i, agree, results));
  }
  return absl::OkStatus();
}

std::string ReckonedText(const Target& target, absl::Span<const LinkTry> tries, const NodeLayout& layout) {
  const LinkUse use = {.opcode = tries[0].call.opcode, .ranks = layout.ranks};
  return FiguresText(use, tries, Reckoned(target, use.opcode, tries, layout));
}

Finding JudgeLink(const LinkMeasurement& measurement) {
  const LinkUse& use = measurement.use;
  std::vector<double> slowest;
  for (const std::vector<double>& by_rank : measurement.seconds)
    slowest.push_back(*std::max_element(by_rank.begin(), by_rank.end()));
  const std::string name = NameOf(use);
  std::string found =
      fmt::format("{} ranks, right results, {}", use.ranks, FiguresText(use, measurement.tries, slowest));
  const std::string unequal = SlowGroups(measurement.seconds.back(), measurement.groups);
  if (!unequal.empty()) absl::StrAppend(&found, "; ", unequal);
  if (measurement.target == nullptr) {
    return unequal.empty() ? Ok(name, found)
                           : Warning(name, found, "equal links", "look at the network of these ranks");
  }
  const Target& target = *measurement.target;
  const std::vector<double> reckoned = Reckoned(target, use.opcode, measurement.tries, measurement.layout);
  const std::string needed =
      absl::StrCat(FiguresText(use, measurement.tries, reckoned), " (", target.name(), ")");
  bool slow = false;
  for (size_t i = 0; i < slowest.size(); ++i) slow = slow || slowest[i] > kTolerance * reckoned[i];
  if (!slow && unequal.empty()) return Ok(name, found, needed);
  const char* link = measurement.layout.nodes > 1 ? "network" : "node";
  return Warning(name, found, needed,
                 slow ? fmt::format("look at the {} link, or compile with a --target that has these figures: "
                                    "schedule and budgets are reckoned with it",
                                    link)
                      : "look at the network of these ranks");
}

}  // namespace ft
