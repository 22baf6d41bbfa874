#include "runtime/executor/save_weights.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/safetensors_writer.h"
#include "runtime/executor/state_at_rest.h"
#include "runtime/plan/unit_parameters.h"
#include "runtime/plan/unit_state.h"

namespace ft {
namespace {

constexpr uint64_t kSaveElements = uint64_t{1} << 20;

// In the order in which their elements come by, in the type in which they are updated.
absl::StatusOr<std::unique_ptr<SafetensorsWriter>> OpenWriter(const proto::Plan& plan,
                                                              const UnitParameters& units,
                                                              const std::string& path) {
  std::vector<TensorSpec> tensors;
  const BufferDTypes dtypes = DTypesOfBuffers(plan);
  for (uint32_t unit = 0; unit < units.size(); ++unit) {
    if (units[unit].empty()) continue;
    FT_ASSIGN_OR_RETURN(const DType master, MasterDType(plan, unit, dtypes));
    const SafetensorsDType dtype = master == DType::kBF16 ? SafetensorsDType::kBF16 : SafetensorsDType::kF32;
    for (const ParameterRange& range : units[unit]) {
      const proto::Parameter& parameter = plan.parameters(static_cast<int>(range.number));
      tensors.push_back({parameter.name(), dtype, {parameter.shape().begin(), parameter.shape().end()}});
    }
  }
  return SafetensorsWriter::Create(path, tensors);
}

// Sends the flat buffer of one unit past rank 0, which keeps what belongs to a parameter.
class UnitSaver {
 public:
  // `owners`: over how many ranks the unit is sliced, the first ones of the run; 1: every rank has all of it.
  UnitSaver(const Executor& executor, const StateAtRest& master, int owners, Communicator& communicator,
            SafetensorsWriter* writer, std::vector<std::byte>& chunk)
      : executor_(executor),
        master_(master),
        owners_(owners),
        communicator_(communicator),
        writer_(writer),
        chunk_(chunk) {}

  absl::Status Save(const std::vector<ParameterRange>& parameters, const char* unit) {
    const uint64_t size = master_.ElementBytes();
    const CollectiveLabel label{.name = unit, .sequence = 0};
    for (int owner = 0; owner < owners_; ++owner) {
      const uint64_t first = owner * master_.elements;
      for (uint64_t at = 0; at < master_.elements; at += kSaveElements) {
        const uint64_t count = std::min(kSaveElements, master_.elements - at);
        if (owners_ > 1 ? owner == communicator_.rank() : writer_ != nullptr)
          FT_RETURN_IF_ERROR(executor_.Read(chunk_.data(), master_.data + at * size, count * size));
        if (owners_ > 1)
          FT_RETURN_IF_ERROR(communicator_.Broadcast(chunk_.data(), count * size, owner, label));
        if (writer_ != nullptr) FT_RETURN_IF_ERROR(Write(parameters, first + at, count));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Write(const std::vector<ParameterRange>& parameters, uint64_t begin, uint64_t count) {
    const uint64_t size = master_.ElementBytes();
    for (const ParameterRange& parameter : parameters) {
      const uint64_t from = std::max<uint64_t>(parameter.begin, begin),
                     to = std::min<uint64_t>(parameter.end, begin + count);
      if (from < to)
        FT_RETURN_IF_ERROR(writer_->Append(chunk_.data() + (from - begin) * size, (to - from) * size));
    }
    return absl::OkStatus();
  }

  const Executor& executor_;
  const StateAtRest master_;
  const int owners_;
  Communicator& communicator_;
  SafetensorsWriter* const writer_;
  std::vector<std::byte>& chunk_;
};

}  // namespace

absl::Status SaveWeights(const proto::Plan& plan, const Executor& executor, Communicator& communicator,
                         const std::string& path) {
  const UnitParameters units = ParametersOfUnits(plan);
  std::unique_ptr<SafetensorsWriter> writer;
  if (communicator.rank() == 0) {
    FT_ASSIGN_OR_RETURN(writer, OpenWriter(plan, units, path));
  }
  std::vector<std::byte> chunk(kSaveElements * sizeof(float));
  const BufferDTypes dtypes = DTypesOfBuffers(plan);
  for (int unit = 0; unit < plan.units_size(); ++unit) {
    if (units[unit].empty()) continue;
    FT_ASSIGN_OR_RETURN(const StateAtRest master,
                        FindMasterParameters(plan, dtypes, executor.operands(), unit));
    UnitSaver saver(executor, master, master.sliced ? executor.mesh().shard : 1, communicator, writer.get(),
                    chunk);
    FT_RETURN_IF_ERROR(saver.Save(units[unit], plan.units(unit).name().c_str()));
  }
  return writer == nullptr ? absl::OkStatus() : writer->Commit();
}

absl::StatusOr<uint64_t> BytesOfWeights(const proto::Plan& plan) {
  uint64_t bytes = 0;
  const BufferDTypes dtypes = DTypesOfBuffers(plan);
  for (const proto::Parameter& parameter : plan.parameters()) {
    FT_ASSIGN_OR_RETURN(const DType dtype, MasterDType(plan, parameter.unit(), dtypes));
    bytes += ElementsOf(parameter) * SizeOf(dtype);
  }
  return bytes;
}

}  // namespace ft
