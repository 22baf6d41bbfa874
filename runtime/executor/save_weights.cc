#include "runtime/executor/save_weights.h"

#include <optional>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/file_layout.h"
#include "runtime/executor/weight_sink.h"
#include "runtime/executor/weights_stream.h"

namespace ft {

absl::Status SaveWeights(const proto::Plan& plan, const Executor& executor, Communicator& communicator,
                         const std::string& path) {
  std::optional<WeightSink> sink;
  if (communicator.rank() == 0) {
    FT_ASSIGN_OR_RETURN(std::vector<StreamedTensor> tensors, TensorsOfStream(plan));
    WeightFile file{path, {}};
    for (const StreamedTensor& tensor : tensors)
      file.tensors.push_back({tensor.name, DTypeInFile(tensor.dtype), tensor.shape});
    sink.emplace(std::move(tensors), std::vector<WeightFile>{std::move(file)}, std::nullopt, "");
  }
  FT_RETURN_IF_ERROR(
      StreamWeights(plan, executor, communicator,
                    [&](const std::byte* elements, uint64_t count) { return sink->Take(elements, count); }));
  return !sink.has_value() || sink->IsComplete() ? absl::OkStatus()
                                                 : absl::InternalError("some weights did not come by");
}

absl::StatusOr<uint64_t> BytesOfWeights(const proto::Plan& plan) {
  uint64_t bytes = 0;
  FT_ASSIGN_OR_RETURN(const std::vector<StreamedTensor> tensors, TensorsOfStream(plan));
  for (const StreamedTensor& tensor : tensors) bytes += tensor.elements * SizeOf(tensor.dtype);
  return bytes;
}

}  // namespace ft
