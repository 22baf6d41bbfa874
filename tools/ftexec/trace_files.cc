#include "tools/ftexec/trace_files.h"

#include <unistd.h>

#include <vector>

#include "runtime/base/status_macros.h"

namespace ft {

absl::Status WriteTrace(const std::string& path, const TraceRecorder& recorder, Communicator& communicator) {
  if (communicator.size() == 1) return recorder.Write(path);
  const absl::Status written = recorder.Write(TracePartPath(path, communicator.rank()));
  FT_RETURN_IF_ERROR(communicator.Barrier({.name = "barrier after the trace", .sequence = 0}));
  FT_RETURN_IF_ERROR(written);
  if (communicator.rank() != 0) return absl::OkStatus();
  std::vector<std::string> parts;
  for (int rank = 0; rank < communicator.size(); ++rank) parts.push_back(TracePartPath(path, rank));
  const absl::Status merged = MergeTraces(parts, path);
  if (absl::IsNotFound(merged)) return absl::OkStatus();
  FT_RETURN_IF_ERROR(merged);
  for (const std::string& part : parts) unlink(part.c_str());
  return absl::OkStatus();
}

}  // namespace ft
