#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "absl/time/time.h"
#include "fmt/format.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/numbers.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/printable.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/folder.h"
#include "tools/ftckpt/commands.h"
#include "tools/ftckpt/find_checkpoint.h"

namespace ft::ckpt {
namespace {

constexpr size_t kColumns = 7, kMostOfColumn = 40;
using Row = std::array<std::string, kColumns>;

// When the manifest was written, which is the last thing that is.
std::string WhenWritten(const std::string& path) {
  struct stat info = {};
  if (stat(fmt::format("{}/{}", path, kManifestName).c_str(), &info) != 0) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::TimeFromTimespec(info.st_mtim), absl::LocalTimeZone());
}

// That all files are there and have their sizes; what is in them is for `verify`.
absl::Status CheckSizes(const CheckpointReader& reader) {
  for (const std::string& name : reader.FileNames()) FT_RETURN_IF_ERROR(reader.CheckSize(name));
  return absl::OkStatus();
}

Row RowOf(const CheckpointEntry& entry) {
  Row row = {fmt::format("{}", entry.step), "-", "-", "-", "-", "-", ""};
  if (!entry.has_manifest) {
    row.back() = "has no manifest: it was never finished, or something took it apart";
    return row;
  }
  row[5] = WhenWritten(entry.path);
  const absl::StatusOr<std::unique_ptr<CheckpointReader>> reader = CheckpointReader::Open(entry.path);
  if (!reader.ok()) {
    row.back() = OneLine(std::string(reader.status().message()), 2 * kMaxNameBytes);
    return row;
  }
  const proto::Manifest& manifest = (*reader)->manifest();
  uint64_t bytes = 0;
  for (const auto& file : manifest.files()) bytes += file.bytes();
  row[1] = std::string(Name((*reader)->layout().type()));
  row[2] = ShortBytes(bytes);
  row[3] = OneLine(manifest.model().name(), 64);
  if (manifest.has_eval_loss()) row[4] = fmt::format("{:.6g}", manifest.eval_loss());
  const absl::Status sizes = CheckSizes(**reader);
  if (manifest.position().steps() != entry.step) {
    row.back() = fmt::format("is of step {}, not of the one that its name says", manifest.position().steps());
  } else {
    row.back() = sizes.ok() ? "whole" : OneLine(std::string(sizes.message()), 2 * kMaxNameBytes);
  }
  return row;
}

std::string Table(const std::vector<Row>& rows) {
  std::array<size_t, kColumns> widths = {};
  for (const Row& row : rows) {
    for (size_t c = 0; c < kColumns; ++c)
      widths[c] = std::max(widths[c], std::min(kMostOfColumn, row[c].size()));
  }
  std::string text;
  for (const Row& row : rows) {
    for (size_t c = 0; c + 1 < kColumns; ++c)
      text += c == 0 || c == 2 ? fmt::format("{:>{}}  ", row[c], widths[c])
                               : fmt::format("{:<{}}  ", row[c], widths[c]);
    text += row.back() + "\n";
  }
  return text;
}

}  // namespace

absl::StatusOr<int> List(const std::string& given) {
  const std::string folder = WithoutSlashes(given);
  struct stat info = {};
  if (stat(folder.c_str(), &info) != 0) return PosixError(errno, "read the folder", folder);
  FT_ASSIGN_OR_RETURN(const std::vector<CheckpointEntry> entries, ListCheckpoints(folder));
  if (entries.empty() && IsCheckpoint(folder))
    return absl::InvalidArgumentError(
        fmt::format("'{}' is a checkpoint, not a folder of them; ftckpt show says what it is", folder));
  std::vector<Row> rows = {{"step", "type", "size", "model", "loss", "written", "state"}};
  for (const CheckpointEntry& entry : entries) rows.push_back(RowOf(entry));
  if (entries.empty()) {
    FT_RETURN_IF_ERROR(PrintOut(fmt::format("'{}' holds no checkpoints\n", folder)));
    return kExitOk;
  }
  FT_RETURN_IF_ERROR(PrintOut(Table(rows)));
  return kExitOk;
}

}  // namespace ft::ckpt
