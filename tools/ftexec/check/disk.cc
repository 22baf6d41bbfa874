#include "tools/ftexec/check/disk.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fmt/format.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/output_check.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/file_layout.h"
#include "runtime/checkpoint/state/folder.h"
#include "runtime/checkpoint/state/plan_state.h"
#include "runtime/executor/save_folder.h"
#include "runtime/executor/save_weights.h"
#include "tools/ftexec/checkpoints.h"

namespace ft {
namespace {

// About what a step adds to a file.
constexpr uint64_t kMetricsOfAStep = 400;
constexpr uint64_t kLogOfAStep = 120;
constexpr uint64_t kEventsOfAStep = 1024;

// Something that the run writes.
struct Output {
  std::string option;
  std::string folder;
  uint64_t least = 0;  // bytes without which the run fails
  uint64_t all = 0;
  std::string what;  // "2 checkpoints of 1.2 GiB"
};

uint64_t Times(uint64_t bytes, uint64_t count) {
  uint64_t product = 0;
  return __builtin_mul_overflow(bytes, count, &product) ? UINT64_MAX : product;
}
uint64_t Plus(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

absl::StatusOr<Output> CheckpointOutput(const Flags& flags, const Job& job, bool one_host,
                                        int64_t first_step) {
  FT_ASSIGN_OR_RETURN(const StateLayout state, StateOfPlan(job.plan(), job.bound.mesh));
  FT_ASSIGN_OR_RETURN(const FileLayout layout,
                      FileLayout::Create(state, ChooseCheckpointType(flags, one_host)));
  const std::string& folder = flags.checkpoint_dir;
  uint64_t bytes = 0;
  for (int file = 0; file < layout.num_files(); ++file) {
    const uint64_t of_file = layout.File(file).bytes;
    FT_RETURN_IF_ERROR(CheckFileLimit(absl::StrCat(folder, "/.../", layout.FileName(file)), of_file));
    bytes = Plus(bytes, of_file);
  }
  const absl::StatusOr<std::vector<CheckpointEntry>> there = ListCheckpoints(folder);
  const uint64_t count = CheckpointsToCome(flags, job.steps - first_step, there.ok() ? there->size() : 0);
  std::string what = fmt::format("{} checkpoint{} of {}", count, count == 1 ? "" : "s", BytesText(bytes));
  if (flags.save_every.time > absl::ZeroDuration() && flags.keep == 0) what += ", or more, as time passes";
  return Output{"--checkpoint-dir", folder, bytes, Times(bytes, count), std::move(what)};
}

absl::StatusOr<std::vector<Output>> OutputsOf(const Flags& flags, const Job& job, bool one_host,
                                              int64_t first_step) {
  std::vector<Output> outputs;
  const auto steps = static_cast<uint64_t>(std::max<int64_t>(0, job.steps - first_step));
  const bool leads = job.rank() == 0;
  const auto add = [&outputs](const char* option, const std::string& folder, uint64_t bytes, bool exact) {
    outputs.push_back(
        {option, folder, exact ? bytes : 0, bytes, absl::StrCat(exact ? "" : "about ", BytesText(bytes))});
  };
  if (!flags.log_dir.empty())
    add("--log-dir", flags.log_dir, Times(kLogOfAStep + (leads ? kEventsOfAStep : 0), steps), false);
  if (!leads) return outputs;
  if (flags.saves()) {
    FT_ASSIGN_OR_RETURN(outputs.emplace_back(), CheckpointOutput(flags, job, one_host, first_step));
  }
  if (!flags.save_weights.empty()) {
    FT_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOfWeights(job.plan()));
    add("--save-weights", FolderOf(flags.save_weights), bytes, true);
  }
  if (!flags.save_hf.empty()) {
    FT_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOfFolder(job.plan(), FolderRequestOf(flags)));
    add("--save-hf", FolderOf(flags.save_hf), bytes, true);
  }
  if (!flags.metrics.empty()) add("--metrics", FolderOf(flags.metrics), Times(kMetricsOfAStep, steps), false);
  return outputs;
}

// Outputs of one file system.
struct FileSystem {
  std::string folder;  // of the first of them
  uint64_t room = 0;
  uint64_t least = 0;
  uint64_t all = 0;
  std::vector<std::string> what;
};

std::vector<FileSystem> FileSystemsOf(const std::vector<Output>& outputs) {
  std::map<dev_t, FileSystem> systems;
  for (const Output& output : outputs) {
    const std::string folder = ExistingFolderOf(output.folder);
    struct stat info;
    const std::optional<uint64_t> room = FreeRoom(folder);
    if (!room.has_value() || stat(folder.c_str(), &info) != 0) continue;  // it does not say
    FileSystem& system = systems[info.st_dev];
    if (system.what.empty()) system.folder = folder;
    system.room = *room;
    system.least = Plus(system.least, output.least);
    system.all = Plus(system.all, output.all);
    system.what.push_back(absl::StrCat(output.option, " ", output.what));
  }
  std::vector<FileSystem> found;
  for (auto& [device, system] : systems) found.push_back(std::move(system));
  return found;
}

}  // namespace

std::string ExistingFolderOf(const std::string& path) {
  std::error_code ignored;
  std::filesystem::path folder = std::filesystem::absolute(path, ignored);
  while (!std::filesystem::is_directory(folder, ignored) && folder.has_relative_path())
    folder = folder.parent_path();
  return folder.native();
}

std::vector<std::string> MissingFolders(const std::string& path) {
  std::vector<std::string> missing;
  if (path.empty()) return missing;
  std::error_code ignored;
  for (std::filesystem::path folder = std::filesystem::absolute(path, ignored);
       folder.has_relative_path() && !std::filesystem::exists(folder, ignored); folder = folder.parent_path())
    missing.push_back(folder.native());
  std::reverse(missing.begin(), missing.end());
  return missing;
}

uint64_t CheckpointsToCome(const Flags& flags, int64_t steps, uint64_t there) {
  const auto to_take = static_cast<uint64_t>(std::max<int64_t>(0, steps));
  const auto every = static_cast<uint64_t>(flags.save_every.steps);
  const uint64_t saves =
      std::max<uint64_t>(1, every == 0 ? 1 : to_take / every + (to_take % every == 0 ? 0 : 1));
  const Retention keep = flags.retention();
  if (keep.newest == 0 && keep.every == 0 && keep.best == 0) return saves;
  // The newest never goes.
  uint64_t kept = Plus(std::max<uint64_t>(1, keep.newest), keep.best);
  if (keep.every > 0) kept = Plus(kept, to_take / keep.every);
  const uint64_t at_once = Plus(kept, 1);
  return std::min(saves, at_once > there ? at_once - there : 1);
}

Finding CheckDisk(const Flags& flags, const Job& job, bool one_host, int64_t first_step) {
  const absl::StatusOr<std::vector<Output>> outputs = OutputsOf(flags, job, one_host, first_step);
  if (!outputs.ok()) return Failure("disk", outputs.status());
  if (outputs->empty()) return Ok("disk", "nothing is written");
  std::vector<std::string> told;
  for (const FileSystem& system : FileSystemsOf(*outputs)) {
    const std::string found = fmt::format("{}: {} free for {}", system.folder, BytesText(system.room),
                                          absl::StrJoin(system.what, ", "));
    if (system.least > system.room) {
      return Failure("disk", absl::StatusCode::kResourceExhausted, found, BytesText(system.least),
                     "free some room, or choose another folder");
    }
    if (system.all > system.room) {
      return Warning(
          "disk", found, BytesText(system.all),
          "free some room, choose another folder, or keep fewer checkpoints (--keep): saves that find "
          "no room are left out");
    }
    told.push_back(found);
  }
  if (told.empty()) return Ok("disk", "its file systems do not say how much room there is");
  return Ok("disk", absl::StrJoin(told, "; "));
}

}  // namespace ft
