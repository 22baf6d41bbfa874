#include "runtime/postmortem/diagnosis.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "fmt/format.h"
#include "runtime/base/numbers.h"
#include "runtime/base/printable.h"
#include "runtime/base/ranks_text.h"

namespace ft {
namespace {

constexpr std::string_view kNoReport = "left no report: it was killed, stopped, or its host was lost";
constexpr std::string_view kNoReports =
    "left no reports: they were killed, stopped, or their hosts were lost";

std::string Finished(std::string text) {
  if (!text.empty() && text.back() != '.') text += '.';
  return text;
}

std::string For(double seconds) { return seconds < 0 ? "" : fmt::format(" for {}", ShortSeconds(seconds)); }

// What compute is in, or what it waits for: the first of these streams that does something.
const ReportedInstruction* Innermost(const RankReport& report) {
  const ReportedStream* compute = FindStream(report, "compute");
  if (compute != nullptr && compute->current.has_value() && compute->current->category != "wait")
    return &*compute->current;
  for (const ReportedStream& stream : report.streams) {
    if (stream.current.has_value() && stream.current->category != "wait") return &*stream.current;
  }
  return compute != nullptr && compute->current.has_value() ? &*compute->current : nullptr;
}

// The main thread is at something else, while a program runs of which no stream is seen to do anything.
bool IsBesideProgram(const RankReport& report) {
  const std::string& at = report.activity.name;
  return (at == "reading the next batch" || at == "reporting") && Innermost(report) == nullptr;
}

std::string CauseText(const RankReport& report) { return OneLine(report.cause, 1024); }

// Of a rank with a report: "stood, computing step 41, in ... for 3.2 s".
std::string WhereText(const RankReport& report) {
  return fmt::format("{}{}", Standing(report), For(StandingSeconds(report)));
}

// Ranks that ended the run by themselves, and not because another one had not come in time.
std::vector<const RankReport*> FailedRanks(const Attempt& attempt) {
  std::vector<const RankReport*> failed;
  for (const RankReport& report : attempt.reports) {
    if (report.origin == ReportOrigin::kSelf && report.missing_ranks.empty()) failed.push_back(&report);
  }
  std::stable_sort(failed.begin(), failed.end(),
                   [](const RankReport* a, const RankReport* b) { return a->taken < b->taken; });
  // A connection that broke is what is left of another rank.
  std::stable_partition(failed.begin(), failed.end(),
                        [](const RankReport* report) { return report->status != "UNAVAILABLE"; });
  return failed;
}

std::string Failure(const Attempt& attempt, const std::vector<const RankReport*>& failed) {
  const RankReport& first = *failed.front();
  const bool all_alike = failed.size() == attempt.reports.size() && failed.size() > 1 &&
                         std::all_of(failed.begin(), failed.end(),
                                     [&](const RankReport* report) { return report->cause == first.cause; });
  if (all_alike)
    return fmt::format("All ranks that left a report ended with one error: {}", Finished(CauseText(first)));
  std::string text =
      fmt::format("Rank {} failed: {} It was {}.", first.rank, Finished(CauseText(first)), WhereText(first));
  if (failed.size() > 1) {
    std::vector<int> others;
    for (size_t i = 1; i < failed.size(); ++i) others.push_back(failed[i]->rank);
    std::sort(others.begin(), others.end());
    text += fmt::format(" So did {}, later or because of it.", RanksText(others));
  }
  return text;
}

// Ranks that others say were lost, with the words of one of them.
std::map<int, const RankReport*> LostRanks(const Attempt& attempt) {
  std::map<int, const RankReport*> lost;
  for (const RankReport& report : attempt.reports) {
    if (report.origin == ReportOrigin::kPeer && report.blamed_rank.has_value() && report.blamed_is_lost)
      lost.emplace(*report.blamed_rank, &report);
  }
  return lost;
}

// Where others waited for some of `ranks`, the first such place in the schedule: who has had what it needs of
// them there waits at the next one. "rank 3 did not come to ..., where ranks 0-2 waited for 5 s".
std::string HeldUp(const std::vector<int>& ranks, std::vector<Gathering> gatherings) {
  std::stable_sort(gatherings.begin(), gatherings.end(), [](const Gathering& a, const Gathering& b) {
    return std::pair(a.run, a.what->instruction) < std::pair(b.run, b.what->instruction);
  });
  for (const Gathering& gathering : gatherings) {
    const std::vector<int> blockers = gathering.Blockers();
    std::vector<int> here, waiting;
    std::set_intersection(ranks.begin(), ranks.end(), blockers.begin(), blockers.end(),
                          std::back_inserter(here));
    if (here.empty()) continue;
    std::set_difference(gathering.waiting.begin(), gathering.waiting.end(), here.begin(), here.end(),
                        std::back_inserter(waiting));
    if (waiting.empty()) continue;
    const std::string seconds = SecondsText(gathering.seconds);
    return fmt::format("{} did not come to {}, where {} waited{}", RanksText(here), GatheringText(gathering),
                       RanksText(waiting), seconds.empty() ? "" : " for " + seconds);
  }
  return "";
}

std::string Capitalized(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string Loss(const Attempt& attempt, const std::map<int, const RankReport*>& lost,
                 const std::vector<Gathering>& gatherings) {
  const auto& [rank, witness] = *lost.begin();
  std::string text = Finished(Capitalized(CauseText(*witness)));
  if (const RankReport* own = FindReport(attempt, rank); own != nullptr) {
    text += fmt::format(" But it left a report, so its process went on: it was {}, and ended by: {}",
                        WhereText(*own), Finished(CauseText(*own)));
  } else {
    text += fmt::format(" It {}.", kNoReport);
  }
  const std::string held_up = HeldUp({rank}, gatherings);
  return held_up.empty() ? text : text + " " + Capitalized(held_up) + ".";
}

// Where the culprits stood instead.
std::string Instead(const Attempt& attempt, const std::vector<int>& culprits) {
  std::map<std::string, std::pair<std::vector<int>, std::vector<double>>> by_place;
  std::vector<int> absent;
  for (const int rank : culprits) {
    const RankReport* report = FindReport(attempt, rank);
    if (report == nullptr) {
      absent.push_back(rank);
      continue;
    }
    auto& [ranks, seconds] = by_place[Standing(*report)];
    ranks.push_back(rank);
    seconds.push_back(StandingSeconds(*report));
  }
  std::string text;
  for (const auto& [place, who] : by_place) {
    const std::string seconds = SecondsText(who.second);
    text +=
        fmt::format(" {} {} {}{}.", Capitalized(RanksText(who.first)), who.first.size() == 1 ? "was" : "were",
                    place, seconds.empty() ? "" : " for " + seconds);
  }
  if (!absent.empty())
    text +=
        fmt::format(" {} {}.", Capitalized(RanksText(absent)), absent.size() == 1 ? kNoReport : kNoReports);
  return text;
}

std::string Hang(const Attempt& attempt, const std::vector<Gathering>& gatherings) {
  std::vector<int> culprits = Culprits(gatherings);
  if (!culprits.empty()) {
    const std::string held_up = HeldUp(culprits, gatherings);
    return Capitalized(held_up) + "." + Instead(attempt, culprits);
  }
  // No collective, but the word of one whose time was over.
  for (const RankReport& report : attempt.reports) {
    if (report.missing_ranks.empty()) continue;
    return fmt::format("{} did not come: {}{}", Capitalized(RanksText(report.missing_ranks)),
                       Finished(CauseText(report)), Instead(attempt, report.missing_ranks));
  }
  for (const Gathering& gathering : gatherings) {
    if (gathering.waiting.size() == gathering.group.size() && gathering.group.size() > 1)
      return fmt::format(
          "All ranks of the group had come to {}, and none left it: what connects them stopped.",
          GatheringText(gathering));
  }
  return "";
}

// A save that some had done and others had not.
std::string Save(const Attempt& attempt) {
  std::vector<int> writing, done;
  for (const RankReport& report : attempt.reports) {
    const ReportedActivity& at = report.saving.name.empty() ? report.activity : report.saving;
    if (at.name == "saving") writing.push_back(report.rank);
    if (at.name == "waiting for all ranks to have saved") done.push_back(report.rank);
  }
  if (writing.empty() || done.empty()) return "";
  return fmt::format("{} had not written {} of the checkpoint, and {} waited for it.{}",
                     Capitalized(RanksText(writing)), writing.size() == 1 ? "its part" : "their parts",
                     RanksText(done), Instead(attempt, writing));
}

}  // namespace

std::string InstructionText(const ReportedInstruction& instruction) {
  std::string place = instruction.program;
  if (instruction.instruction >= 0)
    place += fmt::format("{}instruction {}", place.empty() ? "" : ", ", instruction.instruction);
  if (!instruction.layer.empty()) place += fmt::format(", layer {}", OneLine(instruction.layer, 160));
  const std::string title = OneLine(instruction.title, 160);
  return place.empty() ? title : fmt::format("{} ({})", title, OneLine(place, 512));
}

std::string GatheringText(const Gathering& gathering) {
  const ReportedInstruction& what = *gathering.what;
  std::string text = fmt::format("{} over {} of {}", InstructionText(what), OneLine(what.axis, 64),
                                 RanksText(gathering.group));
  if (gathering.number > 0) text += fmt::format(", call {}", gathering.number);
  if (what.bytes > 0) text += fmt::format(", {}", ShortBytes(what.bytes));
  return text;
}

std::string SecondsText(const std::vector<double>& seconds) {
  double least = -1, most = -1;
  for (const double s : seconds) {
    if (s < 0) continue;
    least = least < 0 ? s : std::min(least, s);
    most = std::max(most, s);
  }
  if (most < 0) return "";
  const std::string low = ShortSeconds(least), high = ShortSeconds(most);
  return low == high ? low : fmt::format("{} to {}", low, high);
}

std::string Standing(const RankReport& report) {
  const ReportedActivity& at = report.activity;
  std::string text = at.name.empty() ? "nowhere that is known" : OneLine(at.name, 160);
  if (at.step >= 0) text += fmt::format(" in step {}", at.step);
  if (at.steps_done >= 0)
    text += fmt::format(" after {} step{}", at.steps_done, at.steps_done == 1 ? "" : "s");
  if (at.micro_step > 0) text += fmt::format(", micro-step {}", at.micro_step);
  if (!report.program.empty() && !IsBesideProgram(report)) {
    if (const ReportedInstruction* in = Innermost(report); in != nullptr) {
      text += fmt::format(", in {}", InstructionText(*in));
    } else {
      text += fmt::format(", in {}", OneLine(report.program, 160));
    }
  }
  if (!report.saving.name.empty())
    text += fmt::format(
        "; the thread that saves: {}{}", OneLine(report.saving.name, 160),
        report.saving.steps_done >= 0 ? fmt::format(" after {} steps", report.saving.steps_done) : "");
  return text;
}

double StandingSeconds(const RankReport& report) {
  if (!report.program.empty() && !IsBesideProgram(report)) {
    const ReportedInstruction* in = Innermost(report);
    return in == nullptr ? report.program_seconds : in->began_ago;
  }
  return report.activity.name.empty() ? -1 : report.activity.seconds;
}

std::string Diagnose(const Attempt& attempt, const std::vector<Gathering>& gatherings) {
  const std::vector<const RankReport*> failed = FailedRanks(attempt);
  if (!failed.empty() && failed.front()->status != "UNAVAILABLE") return Failure(attempt, failed);
  const std::map<int, const RankReport*> lost = LostRanks(attempt);
  if (!lost.empty()) return Loss(attempt, lost, gatherings);
  if (const std::string save = Save(attempt); !save.empty()) return save;
  if (const std::string hang = Hang(attempt, gatherings); !hang.empty()) return hang;
  if (!failed.empty()) return Failure(attempt, failed);
  const RankReport& first = attempt.reports.front();
  return fmt::format(
      "The ranks were ended from outside ({}), and no rank is seen to have waited for another.",
      OneLine(first.cause, 1024));
}

}  // namespace ft
