#include "runtime/device/cluster_operands.h"

#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

absl::Status CheckPlaces(const ClusterBody& body, const KernelOperands& operands) {
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    for (size_t j = 0; j < body.inputs.size(); ++j) {
      if (operands.out[i].data == operands.in[j].data &&
          !MayTakePlaceOf(body, body.inputs[j], body.outputs[i]))
        return absl::InvalidArgumentError(fmt::format("result {} cannot take the place of operand {}", i, j));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ClusterOperands> CheckCluster(const KernelOperands& operands,
                                             const KernelAttributes& attributes,
                                             std::optional<int64_t> partial_bytes) {
  if (attributes.cluster() == nullptr) return absl::InvalidArgumentError("it has no body");
  ClusterOperands checked = {.body = attributes.cluster()->body, .addresses = {}};
  const ClusterBody& body = checked.body;
  FT_RETURN_IF_ERROR(CheckClusterBody(body));
  FT_RETURN_IF_ERROR(CheckCounts(operands, body.inputs.size(), body.outputs.size()));
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    const ClusterBody::Input& input = body.inputs[i];
    FT_RETURN_IF_ERROR(CheckSize(operands.in[i], fmt::format("operand {}", i),
                                 body.Elements(input.rows, input.columns), input.dtype));
    checked.addresses.push_back(operands.in[i].data);
  }
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    const ClusterBody::Output& output = body.outputs[i];
    const int64_t elements = output.over_rows ? body.columns : body.Elements(body.rows, output.columns);
    FT_RETURN_IF_ERROR(CheckSize(operands.out[i], fmt::format("result {}", i), elements, output.dtype));
    checked.addresses.push_back(operands.out[i].data);
  }
  FT_RETURN_IF_ERROR(CheckPlaces(body, operands));
  const std::vector<int64_t> offsets = body.PartialOffsets(partial_bytes.value_or(body.PartialBytesEach()));
  FT_RETURN_IF_ERROR(CheckWorkspace(operands, offsets.back()));
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    checked.addresses.push_back(operands.workspace.as<char>() + offsets[i]);
  return checked;
}

}  // namespace ft
