#include "runtime/kernels/cluster/operands.h"

#include "fmt/format.h"
#include "runtime/base/philox.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

absl::Status CheckPlaces(const ClusterBody& body, const KernelOperands& operands) {
  for (uint32_t i = 0; i < body.results.size(); ++i) {
    for (uint32_t j = 0; j < body.inputs.size(); ++j) {
      if (operands.out[i].data == operands.in[j].data && !MayTakePlaceOf(body, j, i))
        return absl::InvalidArgumentError(fmt::format("result {} cannot take the place of operand {}", i, j));
    }
  }
  return absl::OkStatus();
}

absl::Status AddBuffers(std::string_view what, const std::vector<ClusterBody::Buffer>& buffers,
                        const std::vector<Tensor>& tensors, std::vector<void*>& addresses) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    FT_RETURN_IF_ERROR(
        CheckSize(tensors[i], fmt::format("{} {}", what, i), buffers[i].elements, buffers[i].dtype));
    addresses.push_back(tensors[i].data);
  }
  return absl::OkStatus();
}

absl::Status AddStreams(const KernelAttributes& attributes, ClusterOperands& operands) {
  const uint32_t draws = operands.body.Draws();
  if (draws == 0) return absl::OkStatus();
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> streams, attributes.Ints("streams"));
  if (streams.size() != draws)
    return absl::InvalidArgumentError(
        fmt::format("attribute 'streams' has {} numbers for {} draws", streams.size(), draws));
  for (const int64_t stream : streams) {
    if (stream < 0 || stream >= kFirstOpStream)
      return absl::InvalidArgumentError(fmt::format("stream {} is none", stream));
    operands.addresses.push_back(reinterpret_cast<void*>(static_cast<uintptr_t>(kFirstOpStream + stream)));
  }
  return absl::OkStatus();
}

}  // namespace

uint32_t ClusterOperands::Stream(uint32_t draw) const {
  return static_cast<uint32_t>(
      reinterpret_cast<uintptr_t>(addresses[addresses.size() - body.Draws() + draw]));
}

absl::StatusOr<ClusterOperands> CheckCluster(const KernelOperands& operands,
                                             const KernelAttributes& attributes,
                                             std::optional<int64_t> partial_bytes) {
  if (attributes.cluster() == nullptr) return absl::InvalidArgumentError("it has no body");
  ClusterOperands checked = {.body = attributes.cluster()->body, .addresses = {}};
  const ClusterBody& body = checked.body;
  FT_RETURN_IF_ERROR(CheckClusterBody(body));
  FT_RETURN_IF_ERROR(CheckCounts(operands, body.inputs.size(), body.results.size()));
  FT_RETURN_IF_ERROR(AddBuffers("operand", body.inputs, operands.in, checked.addresses));
  FT_RETURN_IF_ERROR(AddBuffers("result", body.results, operands.out, checked.addresses));
  FT_RETURN_IF_ERROR(CheckPlaces(body, operands));
  const std::vector<int64_t> offsets = body.PartialOffsets(partial_bytes.value_or(body.PartialBytesEach()));
  FT_RETURN_IF_ERROR(CheckWorkspace(operands, offsets.back()));
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    checked.addresses.push_back(operands.workspace.as<char>() + offsets[i]);
  FT_RETURN_IF_ERROR(AddStreams(attributes, checked));
  return checked;
}

}  // namespace ft
