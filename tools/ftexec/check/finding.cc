#include "tools/ftexec/check/finding.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fmt/format.h"
#include "runtime/base/printable.h"
#include "runtime/base/ranks_text.h"

namespace ft {
namespace {

const char* Word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarning:
      return "warn";
    case Verdict::kFailure:
      return "FAIL";
  }
  return "";
}

// A finding, and the ranks that have it.
struct Shared {
  Finding finding;
  std::vector<int> ranks;
};

// Findings of one check that say the same, once.
std::vector<Shared> Distinct(const std::vector<std::vector<Finding>>& by_rank, const std::string& check) {
  std::vector<Shared> distinct;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    for (const Finding& finding : by_rank[rank]) {
      if (finding.check != check) continue;
      const auto same = std::find_if(distinct.begin(), distinct.end(), [&](const Shared& shared) {
        return shared.finding.verdict == finding.verdict && shared.finding.found == finding.found;
      });
      Shared& shared =
          same == distinct.end() ? distinct.emplace_back(Shared{.finding = finding, .ranks = {}}) : *same;
      shared.ranks.push_back(static_cast<int>(rank));
    }
  }
  return distinct;
}

Finding MergeOne(std::vector<Shared> distinct, size_t num_ranks) {
  // What is worst, where the first rank comes first.
  std::stable_sort(distinct.begin(), distinct.end(),
                   [](const Shared& a, const Shared& b) { return a.finding.verdict > b.finding.verdict; });
  Finding merged = distinct.front().finding;
  if (merged.verdict == Verdict::kOk || distinct.front().ranks.size() == num_ranks) return merged;
  // Rank 0 says alone what is the same for all.
  if (distinct.size() == 1 && distinct.front().ranks == std::vector<int>{0}) return merged;
  constexpr size_t kMostTold = 4;
  std::vector<std::string> told;
  size_t more = 0;
  for (const Shared& shared : distinct) {
    if (shared.finding.verdict == Verdict::kOk) continue;
    if (told.size() == kMostTold) {
      more += shared.ranks.size();
      continue;
    }
    told.push_back(absl::StrCat(RanksText(shared.ranks), ": ", shared.finding.found));
  }
  if (more > 0) told.push_back(absl::StrCat("and the like on ", more, " more ranks"));
  merged.found = absl::StrJoin(told, "; ");
  return merged;
}

}  // namespace

Finding Ok(std::string check, std::string found, std::string needed) {
  return {.check = std::move(check), .found = std::move(found), .needed = std::move(needed)};
}

Finding Warning(std::string check, std::string found, std::string needed, std::string advice) {
  return {.check = std::move(check),
          .verdict = Verdict::kWarning,
          .found = std::move(found),
          .needed = std::move(needed),
          .advice = std::move(advice)};
}

Finding Failure(std::string check, const absl::Status& status) {
  return Failure(std::move(check), status.code(), std::string(status.message()), "", "");
}

Finding Failure(std::string check, absl::StatusCode code, std::string found, std::string needed,
                std::string advice) {
  return {.check = std::move(check),
          .verdict = Verdict::kFailure,
          .found = std::move(found),
          .needed = std::move(needed),
          .advice = std::move(advice),
          .code = code};
}

std::vector<Finding> Merge(const std::vector<std::vector<Finding>>& by_rank) {
  std::vector<std::string> checks;
  for (const std::vector<Finding>& findings : by_rank) {
    for (const Finding& finding : findings) {
      if (std::find(checks.begin(), checks.end(), finding.check) == checks.end())
        checks.push_back(finding.check);
    }
  }
  std::vector<Finding> merged;
  merged.reserve(checks.size());
  for (const std::string& check : checks)
    merged.push_back(MergeOne(Distinct(by_rank, check), by_rank.size()));
  return merged;
}

std::string TableOf(const std::vector<Finding>& findings) {
  size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.check.size());
  std::map<Verdict, int> counts;
  std::string table;
  for (const Finding& finding : findings) {
    ++counts[finding.verdict];
    std::string line =
        fmt::format("{:<4}  {:<{}}  {}", Word(finding.verdict), finding.check, width, finding.found);
    if (!finding.needed.empty()) absl::StrAppend(&line, "; needed: ", finding.needed);
    if (!finding.advice.empty()) absl::StrAppend(&line, "; do: ", finding.advice);
    absl::StrAppend(&table, OneLine(line), "\n");
  }
  const int warnings = counts[Verdict::kWarning], failures = counts[Verdict::kFailure];
  return absl::StrCat(table, "checked ", findings.size(), ": ", counts[Verdict::kOk], " ok, ", warnings,
                      warnings == 1 ? " warning, " : " warnings, ", failures, " failed\n");
}

std::string FailuresOf(const std::vector<Finding>& findings) {
  std::vector<std::string> failed;
  for (const Finding& finding : findings)
    if (finding.verdict == Verdict::kFailure) failed.push_back(finding.check);
  if (failed.empty()) return "";
  return absl::StrCat(failed.size(), " of ", findings.size(),
                      " checks failed: ", absl::StrJoin(failed, ", "));
}

absl::Status StatusOf(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings)
    if (finding.verdict == Verdict::kFailure) return absl::Status(finding.code, FailuresOf(findings));
  return absl::OkStatus();
}

std::string BytesText(uint64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (bytes < 1024) return absl::StrCat(bytes, bytes == 1 ? " byte" : " bytes");
  if (bytes < uint64_t{1} << 20) return fmt::format("{:.1f} KiB", number / 0x1p10);
  if (bytes < uint64_t{1} << 30) return fmt::format("{:.1f} MiB", number / 0x1p20);
  return fmt::format("{:.1f} GiB", number / 0x1p30);
}

}  // namespace ft
