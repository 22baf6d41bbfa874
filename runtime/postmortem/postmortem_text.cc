#include "runtime/postmortem/postmortem_text.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "absl/time/time.h"
#include "fmt/format.h"
#include "runtime/base/numbers.h"
#include "runtime/base/printable.h"
#include "runtime/base/ranks_text.h"
#include "runtime/postmortem/diagnosis.h"
#include "runtime/postmortem/positions.h"

namespace ft {
namespace {

constexpr size_t kMostRows = 200;
constexpr size_t kMostGatherings = 16;
constexpr size_t kMostPlaces = 16;
constexpr size_t kMostAttempts = 16;

std::string AtText(double seconds) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::UnixEpoch() + absl::Seconds(seconds),
                          absl::UTCTimeZone());
}

std::string Header(const Attempt& attempt) {
  const RankReport& first = attempt.reports.front();
  double ended = first.taken;
  for (const RankReport& report : attempt.reports) ended = std::min(ended, report.taken);
  std::string text =
      fmt::format("run {}, attempt {}: ended {}, reports of {} of {} rank{}\n",
                  OneLine(first.run_id.empty() ? "none" : first.run_id, 160), attempt.attempt, AtText(ended),
                  attempt.reports.size(), attempt.world_size, attempt.world_size == 1 ? "" : "s");
  if (!first.plan_hash.empty())
    text += fmt::format("plan {} (hash {}){}\n", OneLine(first.plan, 512), OneLine(first.plan_hash, 64),
                        first.mesh.has_value() ? fmt::format(", mesh {}", MeshText(*first.mesh)) : "");
  return text;
}

// Whether all ranks had one plan, and the given one is it.
std::string PlanLines(const Attempt& attempt, const std::string& plan_hash) {
  std::map<std::string, std::vector<int>> by_hash;
  for (const RankReport& report : attempt.reports) {
    if (!report.plan_hash.empty()) by_hash[report.plan_hash].push_back(report.rank);
  }
  std::string text;
  if (by_hash.size() > 1) {
    text = "plans differ:";
    for (const auto& [hash, ranks] : by_hash)
      text += fmt::format(" {} {};", RanksText(ranks), OneLine(hash, 64));
    text.back() = '\n';
  }
  if (!plan_hash.empty() && by_hash.count(plan_hash) == 0)
    text += fmt::format("the plan that was given is not the one of this run: its hash is {}\n", plan_hash);
  return text;
}

// One that came, and how long after the first: all of them wait for the last one.
std::string LastToCome(const Gathering& gathering, const Attempt& attempt) {
  int first = -1, last = -1;
  double first_at = 0, last_at = 0;
  for (size_t i = 0; i < gathering.waiting.size(); ++i) {
    const RankReport* report = FindReport(attempt, gathering.waiting[i]);
    if (gathering.seconds[i] < 0 || report == nullptr) return "";
    const double at = report->taken - gathering.seconds[i];
    if (first < 0 || at < first_at) first = report->rank, first_at = at;
    if (last < 0 || at > last_at) last = report->rank, last_at = at;
  }
  if (first < 0 || first == last || last_at - first_at < 1e-3) return "";
  return fmt::format("; of those that came, rank {} was the last, {} after rank {}", last,
                     ShortSeconds(last_at - first_at), first);
}

std::string WaitLines(const Attempt& attempt, const std::vector<Gathering>& gatherings) {
  if (gatherings.empty()) return "";
  std::string text = "\nwho waited:\n";
  for (size_t i = 0; i < gatherings.size() && i < kMostGatherings; ++i) {
    const Gathering& gathering = gatherings[i];
    const std::string seconds = SecondsText(gathering.seconds);
    text += fmt::format("  {} in {}{}", RanksText(gathering.waiting), GatheringText(gathering),
                        seconds.empty() ? "" : ", for " + seconds);
    const auto add = [&](const std::vector<int>& ranks, const char* what) {
      if (!ranks.empty()) text += fmt::format("; {} {}", RanksText(ranks), what);
    };
    add(gathering.behind, "had not come");
    add(gathering.late, "came too late");
    add(gathering.past, "had left it");
    add(gathering.absent, "left no report");
    text += LastToCome(gathering, attempt) + "\n";
  }
  if (gatherings.size() > kMostGatherings)
    text += fmt::format("  and {} more\n", gatherings.size() - kMostGatherings);
  return text;
}

// The schedule is one and the same on all ranks: so places in it can be compared.
std::string PlaceLines(const Attempt& attempt) {
  std::map<SchedulePlace, std::vector<int>> places;
  for (const RankReport& report : attempt.reports) {
    if (report.runs > 0) places[PlaceOf(report)].push_back(report.rank);
  }
  if (places.size() < 2) return "";
  std::string text = "\nplaces in the schedule, the furthest behind first:\n";
  size_t rows = 0;
  for (const auto& [place, ranks] : places) {
    if (++rows > kMostPlaces) {
      text += fmt::format("  and {} more\n", places.size() - kMostPlaces);
      break;
    }
    text += fmt::format("  {}: program {} since the start", RanksText(ranks), place.run);
    if (!place.program.empty()) text += fmt::format(", {}", OneLine(place.program, 160));
    if (place.program.empty()) text += ", which it has finished";
    if (!place.program.empty() && place.instruction >= 0)
      text += fmt::format(", compute at instruction {}", place.instruction);
    text += "\n";
  }
  return text;
}

std::string Before(const RankReport& report) {
  std::string text;
  const ReportedStream* compute = FindStream(report, "compute");
  if (compute == nullptr) return "";
  for (const ReportedInstruction& done : compute->recent) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", OneLine(done.title, 80));
    if (done.instruction >= 0) text += fmt::format(" #{}", done.instruction);
  }
  return text.empty() ? "" : fmt::format("; compute did before: {}", text);
}

std::string RankLines(const Attempt& attempt) {
  struct Row {
    std::vector<int> ranks;
    std::vector<double> seconds;
    std::string before;
  };
  std::map<std::string, Row> rows;
  for (const RankReport& report : attempt.reports) {
    Row& row = rows[Standing(report)];
    row.ranks.push_back(report.rank);
    row.seconds.push_back(StandingSeconds(report));
    if (row.before.empty()) row.before = Before(report);
  }
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.ranks < b.second.ranks; });
  std::string text = "\nwhere they stood:\n";
  for (size_t i = 0; i < sorted.size() && i < kMostRows; ++i) {
    const auto& [place, row] = sorted[i];
    const std::string seconds = SecondsText(row.seconds);
    text += fmt::format("  {}: {}{}{}\n", RanksText(row.ranks), place,
                        seconds.empty() ? "" : ", for " + seconds, row.before);
  }
  if (sorted.size() > kMostRows) text += fmt::format("  and {} more\n", sorted.size() - kMostRows);
  if (const std::vector<int> absent = AbsentRanks(attempt); !absent.empty())
    text += fmt::format("  {}: no report: killed, stopped, {} host lost, or ended without an error\n",
                        RanksText(absent), absent.size() == 1 ? "its" : "their");
  return text;
}

std::string CauseLines(const Attempt& attempt) {
  std::map<std::string, std::vector<int>> by_cause;
  for (const RankReport& report : attempt.reports)
    by_cause[OneLine(report.cause, 1024)].push_back(report.rank);
  std::vector<std::pair<std::vector<int>, std::string>> sorted;
  for (const auto& [cause, ranks] : by_cause) sorted.emplace_back(ranks, cause);
  std::sort(sorted.begin(), sorted.end());
  std::string text = "\nwhat they ended with:\n";
  for (size_t i = 0; i < sorted.size() && i < kMostRows; ++i)
    text += fmt::format("  {}: {}\n", RanksText(sorted[i].first), sorted[i].second);
  if (sorted.size() > kMostRows) text += fmt::format("  and {} more\n", sorted.size() - kMostRows);
  return text;
}

std::string OtherLines(const Attempt& attempt, const std::vector<Attempt>& others,
                       const std::vector<std::string>& remarks) {
  std::string text;
  size_t rows = 0;
  for (const Attempt& other : others) {
    if (&other == &attempt || ++rows > kMostAttempts) continue;
    text += fmt::format("{}attempt {}, ended {}, {} report{}", text.empty() ? "\nalso here: " : "; ",
                        other.attempt, AtText(other.last), other.reports.size(),
                        other.reports.size() == 1 ? "" : "s");
  }
  if (rows > kMostAttempts) text += fmt::format(" and {} more", rows - kMostAttempts);
  if (!text.empty()) text += "\n";
  if (!remarks.empty()) text += "\n";
  for (const std::string& remark : remarks) text += remark + "\n";
  return text;
}

}  // namespace

std::string PostmortemText(const Attempt& attempt, const std::vector<Attempt>& others,
                           const std::vector<std::string>& remarks, const std::string& plan_hash) {
  const std::vector<Gathering> gatherings = FindGatherings(attempt);
  return Header(attempt) + PlanLines(attempt, plan_hash) + "\n" + Diagnose(attempt, gatherings) + "\n" +
         WaitLines(attempt, gatherings) + PlaceLines(attempt) + RankLines(attempt) + CauseLines(attempt) +
         OtherLines(attempt, others, remarks);
}

}  // namespace ft
