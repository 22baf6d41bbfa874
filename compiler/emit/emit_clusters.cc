#include "compiler/codegen/cluster_body.h"
#include "compiler/emit/emit_parts.h"
#include "runtime/plan/plan_clusters.h"

#include <map>

namespace ft::compiler {

mlir::LogicalResult emitClusters(mlir::ModuleOp module, Numbering &numbers, proto::Plan &plan) {
  std::map<std::string, uint32_t> known; // those of other shapes may have the same body
  for (mlir::func::FuncOp function : mlir::ft::clustersOf(module)) {
    mlir::FailureOr<ClusterBody> body = clusterBodyOf(function);
    if (failed(body))
      return mlir::failure();
    proto::Cluster cluster = ToProto(*body);
    auto [entry, isNew] = known.try_emplace(cluster.SerializeAsString(), plan.clusters_size());
    if (isNew)
      *plan.add_clusters() = std::move(cluster);
    numbers.setCluster(function.getSymName(), entry->second);
  }
  return mlir::success();
}

} // namespace ft::compiler
