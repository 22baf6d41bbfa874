#include "runtime/postmortem/read_reports.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <tuple>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/printable.h"
#include "runtime/base/regular_file.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

namespace fs = std::filesystem;

constexpr double kStartedApart = 600;  // seconds that ranks of one run may start one after the other
constexpr size_t kMaxRemarks = 100;
constexpr size_t kMaxEntries = 4 * kMaxReports;  // of the folder, reports or not

// A damaged folder would fill the screen.
void Remark(std::vector<std::string>& remarks, std::string line) {
  if (remarks.size() < kMaxRemarks) {
    remarks.push_back(std::move(line));
  } else if (remarks.size() == kMaxRemarks) {
    remarks.push_back("there is more that was left out");
  }
}

absl::StatusOr<std::vector<std::string>> ReportNames(const std::string& folder,
                                                     std::vector<std::string>& remarks) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  std::vector<std::string> names;
  size_t seen = 0;
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    if (++seen > kMaxEntries || names.size() >= kMaxReports) {
      Remark(remarks,
             fmt::format("{} holds more files than those of a run: the rest is left out", Quote(folder)));
      break;
    }
    if (std::string name = entries->path().filename().string(); name.ends_with(kRankReportSuffix))
      names.push_back(std::move(name));
  }
  if (error) return PosixError(error.value(), "read the folder", folder);
  std::sort(names.begin(), names.end());
  return names;
}

void KeepRecent(RankReport& report, size_t recent) {
  for (ReportedStream& stream : report.streams) {
    if (stream.recent.size() > recent)
      stream.recent.erase(stream.recent.begin(), stream.recent.end() - static_cast<ptrdiff_t>(recent));
    stream.recent.shrink_to_fit();
  }
}

// What tells the attempts of different runs apart.
using Key = std::tuple<int, std::string, std::string, int>;  // attempt, meeting, run id, world size

// `reports` agree in their keys and are ordered by `taken`.
void SplitByTime(std::vector<RankReport> reports, std::vector<Attempt>& attempts,
                 std::vector<std::string>& remarks) {
  std::vector<std::vector<RankReport>> parts;
  double ended = 0;
  for (RankReport& report : reports) {
    if (parts.empty() || report.started > ended + kStartedApart) parts.emplace_back();
    ended = report.taken;
    parts.back().push_back(std::move(report));
  }
  for (std::vector<RankReport>& part : parts) {
    Attempt& attempt = attempts.emplace_back();
    attempt.attempt = part.front().attempt;
    attempt.meeting = part.front().meeting;
    attempt.world_size = part.front().world_size;
    attempt.last = part.back().taken;
    std::stable_sort(part.begin(), part.end(),
                     [](const RankReport& a, const RankReport& b) { return a.rank < b.rank; });
    for (RankReport& report : part) {
      if (attempt.reports.empty() || attempt.reports.back().rank != report.rank) {
        attempt.reports.push_back(std::move(report));
        continue;
      }
      Remark(remarks, fmt::format("rank {} has two reports of attempt {}: the newer one counts", report.rank,
                                  report.attempt));
      attempt.reports.back() = std::move(report);
    }
  }
}

}  // namespace

absl::StatusOr<ReportFolder> ReadReports(const std::string& folder, size_t recent) {
  ReportFolder result;
  FT_ASSIGN_OR_RETURN(const std::vector<std::string> names, ReportNames(folder, result.remarks));
  for (const std::string& name : names) {
    const absl::StatusOr<std::string> text =
        ReadText((fs::path(folder) / name).string(), "report", kMaxRankReportBytes);
    if (!text.ok()) {
      Remark(result.remarks, std::string(text.status().message()));
      continue;
    }
    absl::StatusOr<RankReport> report = ParseRankReport(*text);
    if (!report.ok()) {
      Remark(result.remarks,
             fmt::format("{} is left out: {}", Quote(name), std::string(report.status().message())));
      continue;
    }
    KeepRecent(*report, recent);
    result.reports.push_back(*std::move(report));
  }
  return result;
}

std::vector<Attempt> SortIntoAttempts(std::vector<RankReport> reports, std::vector<std::string>& remarks) {
  std::stable_sort(reports.begin(), reports.end(),
                   [](const RankReport& a, const RankReport& b) { return a.taken < b.taken; });
  std::map<Key, std::vector<RankReport>> by_key;
  for (RankReport& report : reports) {
    const Key key(report.attempt, report.meeting, report.run_id, report.world_size);
    by_key[key].push_back(std::move(report));
  }
  std::vector<Attempt> attempts;
  for (auto& [key, of_key] : by_key) SplitByTime(std::move(of_key), attempts, remarks);
  std::stable_sort(attempts.begin(), attempts.end(),
                   [](const Attempt& a, const Attempt& b) { return a.last > b.last; });
  return attempts;
}

const Attempt* ChooseAttempt(const std::vector<Attempt>& attempts, std::optional<int> number) {
  for (const Attempt& attempt : attempts) {
    if (!number.has_value() || attempt.attempt == *number) return &attempt;
  }
  return nullptr;
}

}  // namespace ft
