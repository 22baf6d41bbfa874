// cluster: generated code where the plan has some and the platform runs it, else the walker.
#include "runtime/backends/cuda/kernels/cluster.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/backends/cuda/register.h"

namespace ft::cuda {
namespace {

ClusterArgs::Op OpOf(const ClusterBody::Op& op, bool columns, int level) {
  ClusterArgs::Op result = {.kind = op.kind,
                            .function = op.function,
                            .reduction = op.reduction,
                            .dtype = op.dtype,
                            .columns = columns,
                            .level = static_cast<uint8_t>(level),
                            .count = static_cast<uint8_t>(op.operands.size()),
                            .operands = {},
                            .parameters = {}};
  std::copy(op.operands.begin(), op.operands.end(), result.operands);
  std::copy(op.parameters.begin(), op.parameters.end(), result.parameters);
  return result;
}

const ClusterCode* PtxOf(const ft::Cluster& cluster) {
  for (const ClusterCode& code : cluster.codes)
    if (code.target == ClusterCode::kPtx) return &code;
  return nullptr;
}

}  // namespace

ClusterArgs ClusterArgsOf(const ClusterOperands& operands) {
  const ClusterBody& body = operands.body;
  const std::vector<bool> columns = HasColumns(body);
  const std::vector<int> levels = LevelsOf(body);
  ClusterArgs args = {.rows = body.rows,
                      .columns = body.columns,
                      .last_columns = body.last_columns,
                      .block_rows = body.PartialBytes() == 0 ? 0 : body.BlockRows(),
                      .inputs = static_cast<int>(body.inputs.size()),
                      .ops = static_cast<int>(body.ops.size()),
                      .outputs = static_cast<int>(body.outputs.size()),
                      .last_level = *std::max_element(levels.begin(), levels.end()),
                      .in = {},
                      .op = {},
                      .out = {}};
  size_t next = 0;
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    const ClusterBody::Input& input = body.inputs[i];
    args.in[i] = {operands.addresses[next++], input.rows, input.dtype, input.columns};
  }
  for (size_t i = 0; i < body.ops.size(); ++i)
    args.op[i] = OpOf(body.ops[i], columns[body.inputs.size() + i], levels[body.inputs.size() + i]);
  size_t partials = next + body.outputs.size();
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    const ClusterBody::Output& output = body.outputs[i];
    args.out[i] = {.data = operands.addresses[next++],
                   .partials = output.over_rows ? operands.addresses[partials++] : nullptr,
                   .value = static_cast<uint8_t>(output.value),
                   .dtype = output.dtype,
                   .columns = output.columns,
                   .reduction = output.reduction};
  }
  return args;
}

absl::StatusOr<std::shared_ptr<const LoadedCode>> CodeOf(const KernelContext& context) {
  const ft::Cluster* cluster = context.attributes.cluster();
  const ClusterCode* code = cluster == nullptr || context.code == nullptr ? nullptr : PtxOf(*cluster);
  if (code == nullptr) return nullptr;
  if (cluster->loaded == nullptr) {
    FT_ASSIGN_OR_RETURN(cluster->loaded, context.code->Load(*code));
  }
  return std::static_pointer_cast<const LoadedCode>(cluster->loaded);
}

KernelOr MakeCluster(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const std::shared_ptr<const LoadedCode> loaded, CodeOf(context));
  if (loaded != nullptr) {
    const int64_t partial_bytes = PtxOf(*context.attributes.cluster())->partial_bytes;
    FT_ASSIGN_OR_RETURN(ClusterOperands operands,
                        CheckCluster(context.operands, context.attributes, partial_bytes));
    return MakeKernel([loaded, addresses = std::move(operands.addresses)](StreamHandle stream) {
      return loaded->Launch(addresses, /*spaces=*/1, stream);
    });
  }
  FT_ASSIGN_OR_RETURN(const ClusterOperands operands, CheckCluster(context.operands, context.attributes));
  return MakeKernel([args = ClusterArgsOf(operands)](StreamHandle stream) { return Cluster(args, stream); });
}

void RegisterCluster(KernelTable& table) { table.Add("cluster", &MakeCluster); }

}  // namespace ft::cuda
