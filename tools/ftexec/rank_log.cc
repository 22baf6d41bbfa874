#include "tools/ftexec/rank_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/memory/memory.h"
#include "fmt/format.h"
#include "runtime/base/output_check.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

absl::Status MakeFolder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST) return absl::OkStatus();
  return PosixError(errno, "make the folder", folder);
}

}  // namespace

std::string RankLog::PathOf(const std::string& folder, int rank) {
  return folder + "/rank" + std::to_string(rank) + ".log";
}

bool RankLog::IsName(std::string_view name) {
  constexpr std::string_view kBegin = "rank", kEnd = ".log";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return false;
  name.remove_prefix(kBegin.size());
  name.remove_suffix(kEnd.size());
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

absl::Status RankLog::Check(const std::string& folder, int rank, uint64_t bytes) {
  FT_RETURN_IF_ERROR(MakeFolder(folder));
  return CheckInPlaceOutput(PathOf(folder, rank), bytes);
}

absl::StatusOr<std::unique_ptr<RankLog>> RankLog::Open(const std::string& folder, int rank,
                                                       const std::string& beginning) {
  FT_RETURN_IF_ERROR(MakeFolder(folder));
  const std::string path = PathOf(folder, rank);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return PosixError(errno, "write", path);
  auto log = absl::WrapUnique(new RankLog(fd));
  struct stat info;
  // The last line of a rank that was killed may have no end.
  const bool first = fstat(fd, &info) == 0 && info.st_size == 0;
  log->Write(fmt::format("{}{}\n", first ? "" : "\n", beginning));
  return log;
}

RankLog::~RankLog() { close(fd_); }

void RankLog::Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      write_error_ = written == 0 ? EIO : errno;
      return;
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void RankLog::Append(const std::string& folder, int rank, const std::string& line) {
  if (folder.empty()) return;
  const int fd = open(PathOf(folder, rank).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t bytes =
      write(fd, line.data(), line.size());  // the line is on stderr as well
  close(fd);
}

std::string BeginningOfRun(const LaunchEnvironment& environment, std::string_view plan_hash,
                           int64_t first_step, absl::Time now) {
  return fmt::format("{}: rank {} of {} begins, attempt {}, at step {}; plan {}",
                     absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now, absl::UTCTimeZone()), environment.rank,
                     environment.world_size, environment.restart_count, first_step, plan_hash);
}

}  // namespace ft
