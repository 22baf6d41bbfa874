#include "runtime/executor/weights_stream.h"

#include <algorithm>

#include "runtime/base/status_macros.h"
#include "runtime/base/stored_parts.h"
#include "runtime/executor/state_at_rest.h"
#include "runtime/plan/unit_parameters.h"
#include "runtime/plan/unit_state.h"

namespace ft {
namespace {

constexpr uint64_t kPieceElements = uint64_t{1} << 20;

using Take = absl::FunctionRef<absl::Status(const std::byte* elements, uint64_t count)>;

// Sends the flat buffer of one unit past rank 0, which keeps what belongs to a parameter.
class UnitStream {
 public:
  // `owners`: over how many ranks the unit is sliced, the first ones of the run; 1: every rank has all of it.
  UnitStream(const Executor& executor, const StateAtRest& master, int owners, Communicator& communicator,
             std::vector<std::byte>& chunk)
      : executor_(executor), master_(master), owners_(owners), communicator_(communicator), chunk_(chunk) {}

  absl::Status Send(const std::vector<ParameterRange>& parameters, const char* unit, Take take) {
    const uint64_t size = master_.ElementBytes();
    const CollectiveLabel label{.name = unit, .sequence = 0};
    const bool takes = communicator_.rank() == 0;
    for (int owner = 0; owner < owners_; ++owner) {
      const uint64_t first = owner * master_.elements;
      for (uint64_t at = 0; at < master_.elements; at += kPieceElements) {
        const uint64_t count = std::min(kPieceElements, master_.elements - at);
        if (owners_ > 1 ? owner == communicator_.rank() : takes)
          FT_RETURN_IF_ERROR(executor_.Read(chunk_.data(), master_.data + at * size, count * size));
        if (owners_ > 1)
          FT_RETURN_IF_ERROR(communicator_.Broadcast(chunk_.data(), count * size, owner, label));
        if (takes) FT_RETURN_IF_ERROR(Pick(parameters, first + at, count, take));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Pick(const std::vector<ParameterRange>& parameters, uint64_t begin, uint64_t count,
                    Take take) {
    for (const ParameterRange& parameter : parameters) {
      const uint64_t from = std::max<uint64_t>(parameter.begin, begin),
                     to = std::min<uint64_t>(parameter.end, begin + count);
      if (from < to)
        FT_RETURN_IF_ERROR(take(chunk_.data() + (from - begin) * master_.ElementBytes(), to - from));
    }
    return absl::OkStatus();
  }

  const Executor& executor_;
  const StateAtRest master_;
  const int owners_;
  Communicator& communicator_;
  std::vector<std::byte>& chunk_;
};

UnitParameters ParametersOf(const proto::Plan& plan, Streamed which) {
  UnitParameters units = ParametersOfUnits(plan);
  if (which == Streamed::kAll) return units;
  for (std::vector<ParameterRange>& unit : units)
    std::erase_if(unit, [&](const ParameterRange& range) {
      return plan.parameters(static_cast<int>(range.number)).frozen();
    });
  return units;
}

}  // namespace

absl::StatusOr<std::vector<StreamedTensor>> TensorsOfStream(const proto::Plan& plan, Streamed which) {
  std::vector<StreamedTensor> tensors;
  const UnitParameters units = ParametersOf(plan, which);
  const BufferDTypes dtypes = DTypesOfBuffers(plan);
  for (uint32_t unit = 0; unit < units.size(); ++unit) {
    if (units[unit].empty()) continue;
    FT_ASSIGN_OR_RETURN(const DType dtype, MasterDType(plan, unit, dtypes));
    for (const ParameterRange& range : units[unit]) {
      const proto::Parameter& parameter = plan.parameters(static_cast<int>(range.number));
      const std::vector<int64_t> shape(parameter.shape().begin(), parameter.shape().end());
      FT_ASSIGN_OR_RETURN(std::vector<StoredPart> parts, StoredParts(parameter.stored_as(), shape));
      if (parts.empty()) parts.push_back({parameter.name(), shape});
      const uint64_t elements = ElementsOf(parameter) / parts.size();
      for (StoredPart& part : parts)
        tensors.push_back({std::move(part.name), dtype, std::move(part.shape), elements});
    }
  }
  return tensors;
}

absl::Status StreamWeights(const proto::Plan& plan, const Executor& executor, Communicator& communicator,
                           Take take, Streamed which) {
  const UnitParameters units = ParametersOf(plan, which);
  const BufferDTypes dtypes = DTypesOfBuffers(plan);
  std::vector<std::byte> chunk(kPieceElements * sizeof(float));
  for (int unit = 0; unit < plan.units_size(); ++unit) {
    if (units[unit].empty()) continue;
    FT_ASSIGN_OR_RETURN(const StateAtRest master,
                        FindMasterParameters(plan, dtypes, executor.operands(), unit));
    UnitStream stream(executor, master, master.sliced ? executor.mesh().shard : 1, communicator, chunk);
    FT_RETURN_IF_ERROR(stream.Send(units[unit], plan.units(unit).name().c_str(), take));
  }
  return absl::OkStatus();
}

}  // namespace ft
