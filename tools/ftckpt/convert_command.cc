#include "fmt/format.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/numbers.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "tools/ftckpt/commands.h"
#include "tools/ftckpt/find_checkpoint.h"

namespace ft::ckpt {

absl::StatusOr<int> ConvertTo(const std::string& given, const ConversionRequest& request) {
  FT_ASSIGN_OR_RETURN(const std::string path, FindCheckpoint(given));
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> source, CheckpointReader::Open(path));
  FT_ASSIGN_OR_RETURN(const Converted converted, ConvertCheckpoint(request, *source));
  for (const std::string& note : converted.notes) PrintError("ftckpt: " + note);
  FT_RETURN_IF_ERROR(PrintOut(fmt::format(
      "{} -> {}: {}, {} file{}, {} bytes ({})\n", path, request.destination, converted.form, converted.files,
      converted.files == 1 ? "" : "s", Grouped(converted.bytes), ShortBytes(converted.bytes))));
  return kExitOk;
}

}  // namespace ft::ckpt
