// cluster: generated code where the plan has some and the platform runs it, else the walker.
#include "runtime/kernels/cluster/cuda.h"

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
  if (op.kind != ClusterOpKind::kRandomBits)
    std::copy(op.operands.begin(), op.operands.end(), result.operands);
  std::copy(op.parameters.begin(), op.parameters.end(), result.parameters);
  return result;
}

const ClusterCode* PtxOf(const ft::Cluster& cluster) {
  for (const ClusterCode& code : cluster.codes)
    if (code.target == ClusterCode::kPtx) return &code;
  return nullptr;
}

ClusterArgs::Place PlaceOf(const ClusterBody::Place& place) {
  ClusterArgs::Place result = {place.begin, place.column_stride, static_cast<int>(place.steps.size()), {}};
  for (size_t i = 0; i < place.steps.size(); ++i)
    result.step[i] = {place.steps[i].every, place.steps[i].extent, place.steps[i].stride};
  return result;
}

void SetOps(const ClusterOperands& operands, ClusterArgs& args) {
  const ClusterBody& body = operands.body;
  const std::vector<bool> columns = HasColumns(body);
  const std::vector<int> levels = LevelsOf(body);
  args.last_level = *std::max_element(levels.begin(), levels.end());
  int draws = 0;
  for (size_t i = 0; i < body.ops.size(); ++i) {
    const ClusterBody::Op& op = body.ops[i];
    args.op[i] = OpOf(op, columns[body.reads.size() + i], levels[body.reads.size() + i]);
    const bool draw = op.kind == ClusterOpKind::kRandomBits;
    if (!draw && op.kind != ClusterOpKind::kIota) continue;
    args.op[i].parameters[0] = draws;
    args.draw[draws++] = {draw ? static_cast<const int64_t*>(operands.addresses[op.operands[0]]) : nullptr,
                          op.elements, draw ? operands.Stream(op.draw) : 0, PlaceOf(op.place)};
  }
}

}  // namespace

ClusterArgs ClusterArgsOf(const ClusterOperands& operands) {
  const ClusterBody& body = operands.body;
  ClusterArgs args = {};
  args.rows = body.rows;
  args.columns = body.columns;
  args.last_columns = body.last_columns;
  args.block_rows = body.HasPartials() ? body.BlockRows() : 0;
  args.reads = static_cast<int>(body.reads.size());
  args.ops = static_cast<int>(body.ops.size());
  args.outputs = static_cast<int>(body.outputs.size());
  for (size_t i = 0; i < body.reads.size(); ++i)
    args.read[i] = {operands.addresses[body.reads[i].input], body.dtype(i), PlaceOf(body.reads[i].place)};
  SetOps(operands, args);
  size_t partials = body.inputs.size() + body.results.size();
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    const ClusterBody::Output& output = body.outputs[i];
    args.out[i] = {.data = operands.addresses[body.inputs.size() + output.result],
                   .partials = output.over_rows ? operands.addresses[partials++] : nullptr,
                   .acc = output.acc < 0 ? nullptr : operands.addresses[static_cast<size_t>(output.acc)],
                   .value = static_cast<uint8_t>(output.value),
                   .dtype = body.results[output.result].dtype,
                   .reduction = output.reduction,
                   .place = PlaceOf(output.place)};
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
