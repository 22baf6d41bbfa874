#include "tools/ftexec/shared_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/regular_file.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

// That a rank may write in the file's folder: the file, with `contents`.
absl::Status TryToWrite(const std::string& path, std::string_view contents) {
  const OpenFile file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.fd() < 0) return PosixError(errno, "write", path);
  const ssize_t written = write(file.fd(), contents.data(), contents.size());
  if (written == static_cast<ssize_t>(contents.size())) return absl::OkStatus();
  return PosixError(written < 0 ? errno : ENOSPC, "write", path);
}

// Whether the file is that of this run: a killed one may have left its own in the folder of any rank.
bool HasContents(const std::string& path, std::string_view contents) {
  const absl::StatusOr<std::string> there = ReadText(path, "mark", contents.size());
  return there.ok() && *there == contents;
}

}  // namespace

absl::Status CheckSharedFolder(const SharedFolder& shared, int rank, const AgreeFunction& agree) {
  const std::string seen = fmt::format("{}/{}", shared.folder, shared.mark);
  const auto make = [&](const auto&) -> absl::StatusOr<std::string> {
    FT_RETURN_IF_ERROR(shared.make());
    std::string mark = fmt::format("{} {}", getpid(), absl::GetCurrentTimeNanos());
    FT_RETURN_IF_ERROR(TryToWrite(seen, mark));
    return mark;
  };
  FT_ASSIGN_OR_RETURN(const std::string mark, agree("folder of checkpoints", 0, "", make));
  const std::string unseen = "does not see what rank 0 wrote there: all ranks need one folder";
  std::string payload;
  if (!HasContents(seen, mark)) {
    payload = unseen;
  } else {
    const std::string own = fmt::format("{}/.written-by-rank-{}", shared.folder, rank);
    if (const absl::Status status = TryToWrite(own, mark); !status.ok())
      payload = std::string(status.message());
    unlink(own.c_str());
  }
  const auto decide = [&](const std::vector<std::string>& by_rank) -> absl::StatusOr<std::string> {
    unlink(seen.c_str());
    for (size_t other = 0; other < by_rank.size(); ++other) {
      if (by_rank[other].empty()) continue;
      // One is an error of whoever started the run, the other one of the file system.
      const std::string line =
          fmt::format("{}={}: rank {} {}", shared.option, shared.folder, other, by_rank[other]);
      return by_rank[other] == unseen ? absl::FailedPreconditionError(line) : absl::InternalError(line);
    }
    return "";
  };
  return agree("folder of checkpoints", 1, std::move(payload), decide).status();
}

}  // namespace ft
