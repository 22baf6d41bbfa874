#include "runtime/metrics/event_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>

#include "absl/cleanup/cleanup.h"
#include "absl/memory/memory.h"
#include "runtime/base/output_check.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr int64_t kMaxSeconds = 9'999'999'999;  // ten digits: one more, and the order of names were another
constexpr int kMaxFilesOfProcess = 10000;       // in one second

double SystemSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Letters, digits, '-' and '_'; a dot would look like the end of the name.
std::string HostName() {
  std::array<char, 65> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  std::string host = name.data();
  for (char& c : host)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') c = '-';
  return host;
}

// Of the name of an event file, in 1 ... kMaxSeconds; 0: it is none, or of nobody's time.
int64_t SecondsOfName(std::string_view name) {
  const size_t at = name.find(kPrefix);
  if (at != 0) return 0;
  name.remove_prefix(kPrefix.size());
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), seconds);
  const bool good = error == std::errc() && end != name.data() + name.size() && *end == '.';
  return good && seconds > 0 && seconds <= kMaxSeconds ? seconds : 0;
}

// For the next file's name.
absl::StatusOr<int64_t> NextSeconds(const std::string& folder, double now) {
  DIR* const entries = opendir(folder.c_str());
  if (entries == nullptr) return PosixError(errno, "read the folder", folder);
  const absl::Cleanup closed = [entries] { closedir(entries); };
  int64_t latest = 0;
  while (const dirent* entry = readdir(entries)) latest = std::max(latest, SecondsOfName(entry->d_name));
  return std::clamp(std::max(static_cast<int64_t>(now), latest + 1), int64_t{1}, kMaxSeconds);
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventFile>> EventFile::Open(const std::string& folder,
                                                           const EventFileOptions& options) {
  const auto clock = options.wall_clock != nullptr ? options.wall_clock : SystemSeconds;
  FT_ASSIGN_OR_RETURN(const int64_t seconds, NextSeconds(folder, clock()));
  const std::string stem = fmt::format("{}/{}{:010}.{}.{}.", folder, kPrefix, seconds, HostName(), getpid());
  std::string path;
  int fd = -1;
  // Another process may have the same number in a container of the same name.
  for (int n = 0; fd < 0; ++n) {
    path = stem + std::to_string(n);
    fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0 && (errno != EEXIST || n == kMaxFilesOfProcess)) return PosixError(errno, "write", path);
  }
  auto file = absl::WrapUnique(new EventFile(std::move(path), fd, clock));
  file->Write(file->record_.FileVersion(clock()));
  file->Write(file->record_.SessionStart(clock(), options.first_step));
  return file;
}

absl::Status EventFile::Check(const std::string& folder, uint64_t bytes) {
  FT_RETURN_IF_ERROR(NextSeconds(folder, 0).status());
  return CheckInPlaceOutput(fmt::format("{}/{}", folder, kPrefix), bytes);
}

EventFile::~EventFile() { close(fd_); }

void EventFile::WriteScalars(int64_t step, absl::Span<const EventScalar> scalars) {
  if (scalars.empty()) return;
  for (const EventScalar& scalar : scalars) record_.AddScalar(scalar.tag, scalar.value);
  Write(record_.Scalars(wall_clock_(), step));
}

void EventFile::WriteText(int64_t step, std::string_view tag, std::string_view markdown) {
  Write(record_.Text(wall_clock_(), step, tag, markdown));
}

void EventFile::Write(std::string_view record) {
  if (!status_.ok()) return;
  for (std::string_view rest = record; !rest.empty();) {
    const ssize_t written = write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      status_ = PosixError(written == 0 ? EIO : errno, "write", path_);
      // Where this fails as well, readers stop at the torn record.
      [[maybe_unused]] const int ignored = ftruncate(fd_, size_);
      return;
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
  size_ += static_cast<int64_t>(record.size());
}

}  // namespace ft
