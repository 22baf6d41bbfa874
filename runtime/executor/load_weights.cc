#include "runtime/executor/load_weights.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/base/convert_elements.h"
#include "runtime/base/status_macros.h"
#include "runtime/executor/state_at_rest.h"

namespace ft {
namespace {

constexpr uint64_t kChunkElements = uint64_t{1} << 20;

const std::byte* AsBytes(const std::vector<float>& values) {
  return static_cast<const std::byte*>(static_cast<const void*>(values.data()));
}

// What this rank holds of one parameter, or of a part of it, read from its place in the file.
class ParameterLoader {
 public:
  ParameterLoader(const Executor& executor, const SafetensorsReader& reader,
                  const SafetensorsReader::Entry& entry, uint64_t offset)
      : executor_(executor),
        reader_(reader),
        entry_(entry),
        range_{offset, offset + static_cast<uint64_t>(entry.num_elements)} {}

  absl::Status Load(const StateAtRest& weights) {
    return ForEachChunk(weights.begin, weights.elements, [&](uint64_t first, uint64_t count) {
      rounded_.resize(count * weights.ElementBytes());
      ConvertElements(DType::kF32, AsBytes(chunk_), weights.dtype, rounded_.data(), count);
      return executor_.Write(weights.At(first), rounded_.data(), rounded_.size());
    });
  }

 private:
  // Reads what [begin, begin + elements) of the unit has of the parameter, chunk after chunk, into chunk_.
  template <typename Take>
  absl::Status ForEachChunk(uint64_t held_begin, uint64_t held_elements, Take take) {
    const auto [begin, end] = Intersect(range_, {held_begin, held_begin + held_elements});
    for (uint64_t at = begin; at < end; at += kChunkElements) {
      const uint64_t count = std::min(kChunkElements, end - at);
      chunk_.resize(count);
      FT_RETURN_IF_ERROR(Read(at, at + count, chunk_.data()));
      FT_RETURN_IF_ERROR(take(at, count));
    }
    return absl::OkStatus();
  }

  // Elements [begin, end) of the unit.
  absl::Status Read(uint64_t begin, uint64_t end, float* out) const {
    return reader_.ReadAsF32(entry_, static_cast<int64_t>(begin - range_.begin),
                             static_cast<int64_t>(end - begin), out);
  }

  const Executor& executor_;
  const SafetensorsReader& reader_;
  const SafetensorsReader::Entry& entry_;
  const ElementRange range_;
  std::vector<float> chunk_;
  std::vector<std::byte> rounded_;  // chunk_ in the type at rest
};

}  // namespace

absl::Status LoadWeights(const proto::Plan& plan, const Executor& executor, const InitialWeights& weights) {
  const BufferDTypes dtypes = DTypesOfBuffers(plan);
  for (int p = 0; p < plan.parameters_size(); ++p) {
    const proto::Parameter& parameter = plan.parameters(p);
    FT_ASSIGN_OR_RETURN(const StateAtRest master,
                        FindMasterParameters(plan, dtypes, executor.operands(), parameter.unit()));
    FT_ASSIGN_OR_RETURN(const std::optional<StateAtRest> copy,
                        FindWorkingCopy(plan, dtypes, executor.operands(), parameter.unit()));
    uint64_t offset = parameter.offset();
    for (const SafetensorsReader::Entry* entry : weights.entries[p]) {
      ParameterLoader loader(executor, *weights.reader, *entry, offset);
      FT_RETURN_IF_ERROR(loader.Load(master));
      if (copy.has_value()) FT_RETURN_IF_ERROR(loader.Load(*copy));
      offset += static_cast<uint64_t>(entry->num_elements);
    }
  }
  return absl::OkStatus();
}

}  // namespace ft
