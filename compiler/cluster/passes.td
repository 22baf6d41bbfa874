#ifndef FT_COMPILER_CLUSTER_PASSES
#define FT_COMPILER_CLUSTER_PASSES

include "compiler/settings.td"
include "mlir/Pass/PassBase.td"

def FormClustersPass : Pass<"ft-form-clusters", "::mlir::ModuleOp"> {
  let summary = "Neighbouring primitives become one kernel";
  let description = [{
    Runs when element types are final. Elementwise ops, conversions, random bits and reductions, and what repeats, slices or transposes what they read, become
    `ft.cluster` and a function each, shared by clusters that are alike. A cluster stands where one of its ops stood; nothing is moved past what needs
    it, so no other op moves. Ops of forward are apart from those of backward, which may be together with what is computed again. An op
    alone is a cluster, too.
  }];
  let options = FormClustersSettings;
  let dependentDialects = ["::mlir::ft::FtDialect", "::mlir::func::FuncDialect"];
}

#endif  // FT_COMPILER_CLUSTER_PASSES
