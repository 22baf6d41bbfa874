// The reports that a folder holds, sorted into attempts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/postmortem/rank_report.h"

namespace ft {

// Reports that are read at most; a folder of more is of no run.
inline constexpr size_t kMaxReports = 65536;

struct ReportFolder {
  std::vector<RankReport> reports;
  std::vector<std::string> remarks;  // of what was left out, a line each
};

// Of each stream's finished instructions the last `recent` are kept. Files that cannot be read, or are no
// reports, are left out. Errors: PosixError's for the folder.
absl::StatusOr<ReportFolder> ReadReports(const std::string& folder, size_t recent = 3);

// One attempt of one run.
struct Attempt {
  int attempt = 0;
  std::string meeting;  // empty: its ranks had not met
  int world_size = 1;
  double last = 0;                  // when the newest of its reports was taken
  std::vector<RankReport> reports;  // by rank, each once
};

// Newest first. Ranks that met and those that did not are not of one attempt, nor are those that ended ten
// minutes before others of them began. Of a rank that is there twice the newer report is kept, and a remark
// says so.
std::vector<Attempt> SortIntoAttempts(std::vector<RankReport> reports, std::vector<std::string>& remarks);

// The newest one; with a number the newest of that number. Null when there is none.
const Attempt* ChooseAttempt(const std::vector<Attempt>& attempts, std::optional<int> number);

}  // namespace ft
