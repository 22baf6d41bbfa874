#include "runtime/checkpoint/state/branches.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <tuple>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/checkpoint_reader.h"

namespace ft {
namespace {

constexpr uint64_t kMostBranches = uint64_t{1} << 62;  // more than can be begun

std::optional<proto::Manifest::Branch> BranchOf(const CheckpointEntry& entry) {
  if (!entry.has_manifest) return std::nullopt;
  const auto reader = CheckpointReader::Open(entry.path);
  if (!reader.ok() || (*reader)->manifest().branch().number() > kMostBranches) return std::nullopt;
  return (*reader)->manifest().branch();
}

// The folder "abandoned-N" that is made now.
absl::StatusOr<std::string> MakeAside(const std::string& folder) {
  for (uint64_t number = 1;; ++number) {
    std::string path = fmt::format("{}/abandoned-{}", folder, number);
    if (mkdir(path.c_str(), 0777) == 0) return path;
    if (errno != EEXIST) return PosixError(errno, "make the folder", path);
  }
}

}  // namespace

absl::StatusOr<std::vector<BranchedCheckpoint>> ListBranches(const std::string& folder) {
  FT_ASSIGN_OR_RETURN(std::vector<CheckpointEntry> entries, ListCheckpoints(folder));
  std::vector<BranchedCheckpoint> there;
  for (CheckpointEntry& entry : entries) {
    std::optional<proto::Manifest::Branch> branch = BranchOf(entry);
    there.push_back({std::move(entry), std::move(branch)});
  }
  return there;
}

bool IsInPast(const proto::Manifest::Branch& branch, const proto::Manifest::Branch& other, uint64_t step) {
  if (other.number() == branch.number()) return true;
  return std::any_of(branch.past().begin(), branch.past().end(), [&](const auto& past) {
    return past.number() == other.number() && step <= past.steps();
  });
}

std::vector<CheckpointEntry> NewestBranch(const std::vector<BranchedCheckpoint>& there) {
  const BranchedCheckpoint* newest = nullptr;
  for (const BranchedCheckpoint& one : there) {
    if (!one.branch.has_value()) continue;
    if (newest == nullptr || one.branch->number() > newest->branch->number()) newest = &one;
  }
  std::vector<CheckpointEntry> entries;
  for (const BranchedCheckpoint& one : there) {
    if (newest == nullptr || !one.branch.has_value() ||
        IsInPast(*newest->branch, *one.branch, one.entry.step))
      entries.push_back(one.entry);
  }
  return entries;
}

Departure Depart(const std::vector<BranchedCheckpoint>& there, const std::optional<BranchPoint>& from) {
  Departure departure;
  if (from.has_value()) departure.branch = from->branch;
  uint64_t newest = 0;
  for (const BranchedCheckpoint& one : there) {
    if (one.branch.has_value()) newest = std::max(newest, one.branch->number());
    const bool continued = from.has_value() && one.entry.step <= from->step &&
                           (!one.branch.has_value() || IsInPast(from->branch, *one.branch, one.entry.step));
    if (one.entry.has_manifest && !continued) departure.left.push_back(one.entry);
  }
  if (departure.left.empty()) return departure;
  departure.branch.Clear();
  departure.branch.set_number(newest + 1);
  if (!from.has_value()) return departure;
  const auto add = [&](uint64_t number, uint64_t steps) {
    auto& past = *departure.branch.add_past();
    past.set_number(number);
    past.set_steps(steps);
  };
  for (const auto& past : from->branch.past()) add(past.number(), std::min(past.steps(), from->step));
  add(from->branch.number(), from->step);
  return departure;
}

absl::StatusOr<std::string> MoveAside(const std::string& folder, const std::vector<CheckpointEntry>& left,
                                      const StagedCheckpoint& published) {
  std::string aside;
  for (const CheckpointEntry& entry : left) {
    // Under the name of the one that was published lies that one. Killed before it is moved, the one that it
    // replaced goes with RemoveLeftovers, as any other does.
    const std::string from = entry.step == published.step ? published.replaced() : entry.path;
    if (access(from.c_str(), F_OK) != 0 && errno == ENOENT) continue;
    if (aside.empty()) {
      FT_ASSIGN_OR_RETURN(aside, MakeAside(folder));
    }
    const std::string to = fmt::format("{}/{}", aside, CheckpointName(entry.step));
    if (rename(from.c_str(), to.c_str()) == 0) continue;
    const absl::Status status = PosixError(errno, "move aside", entry.path);
    rmdir(aside.c_str());  // where nothing is in it
    return status;
  }
  if (aside.empty()) return aside;
  FT_RETURN_IF_ERROR(SyncPath(aside));
  FT_RETURN_IF_ERROR(SyncPath(folder));
  return aside;
}

std::string StepsText(const std::vector<CheckpointEntry>& checkpoints) {
  if (checkpoints.empty()) return "no step";
  const auto [least, most] = std::minmax_element(
      checkpoints.begin(), checkpoints.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  if (checkpoints.size() == 1) return fmt::format("step {}", most->step);
  if (checkpoints.size() == 2) return fmt::format("steps {} and {}", least->step, most->step);
  return fmt::format("{} steps from {} to {}", checkpoints.size(), least->step, most->step);
}

}  // namespace ft
