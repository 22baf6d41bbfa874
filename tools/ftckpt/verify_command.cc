#include <dirent.h>

#include <memory>
#include <set>

#include "fmt/format.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/numbers.h"
#include "runtime/base/printable.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "tools/ftckpt/commands.h"
#include "tools/ftckpt/find_checkpoint.h"

namespace ft::ckpt {
namespace {

// What else lies in the folder. Not being able to look is no news here.
std::vector<std::string> Strangers(const std::string& folder, const std::vector<std::string>& files) {
  std::set<std::string, std::less<>> known(files.begin(), files.end());
  known.insert({kManifestName, ".", ".."});
  std::set<std::string> strangers;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(folder.c_str()), closedir);
  while (const dirent* entry = stream == nullptr ? nullptr : readdir(stream.get())) {
    if (!known.contains(std::string_view(entry->d_name))) strangers.insert(entry->d_name);
  }
  return {strangers.begin(), strangers.end()};
}

// A file that is not there is damage of the checkpoint, not a failure of the system.
absl::Status AsDamage(const absl::Status& status) {
  return absl::IsNotFound(status) ? absl::DataLossError(status.message()) : status;
}

}  // namespace

absl::StatusOr<int> Verify(const std::string& given) {
  const std::string path = WithoutSlashes(given);
  if (!IsCheckpoint(path)) {
    FT_ASSIGN_OR_RETURN(const std::string newest, FindCheckpoint(path));
    return absl::InvalidArgumentError(
        fmt::format("'{}' holds checkpoints; name one of them, such as {}", path, Quote(newest)));
  }
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader, CheckpointReader::Open(path));
  const std::vector<std::string> files = reader->FileNames();
  absl::Status first;
  size_t damaged = 0;
  for (const std::string& name : files) {
    const absl::Status status = AsDamage(reader->VerifyFile(name));
    if (status.ok()) continue;
    ++damaged;
    FT_RETURN_IF_ERROR(PrintOut(fmt::format("damaged  {}  {}\n", OneLine(name, kMaxNameBytes),
                                            OneLine(std::string(status.message())))));
    first.Update(status);
  }
  for (const std::string& name : Strangers(path, files))
    FT_RETURN_IF_ERROR(PrintOut(fmt::format("not part of it  {}\n", OneLine(name, kMaxNameBytes))));
  if (!first.ok())
    return absl::Status(first.code(), fmt::format("{} of {} files are damaged, the first: {}", damaged,
                                                  files.size(), std::string(first.message())));
  uint64_t bytes = 0;
  for (const auto& file : reader->manifest().files()) bytes += file.bytes();
  FT_RETURN_IF_ERROR(PrintOut(fmt::format("{}: whole: {} files, {} bytes ({}), all checksums agree\n", path,
                                          files.size(), Grouped(bytes), ShortBytes(bytes))));
  return kExitOk;
}

}  // namespace ft::ckpt
