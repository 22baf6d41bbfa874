#ifndef FT_COMPILER_COMPOSITES_PASSES
#define FT_COMPILER_COMPOSITES_PASSES

include "mlir/Pass/PassBase.td"

def OutlineCompositesPass : Pass<"ft-outline-composites", "::mlir::ModuleOp"> {
  let summary = "Composites of the dialect become functions of the module and calls of them";
  let description = [{
    Runs first. Ops that are short for others become these: `ft.rope` is ft.rotate, by a table that all of a function share. Then `ft.softmax` becomes `ft.call @softmax`. Ops that are alike but for their layer share a function; those of other shapes or numbers have
    one of their own (@softmax_0).
  }];
  let dependentDialects = ["::mlir::ft::FtDialect", "::mlir::func::FuncDialect"];
}

def ExpandCompositesPass : Pass<"ft-expand-composites", "::mlir::ModuleOp"> {
  let summary = "Puts the bodies of composites in the place of their calls";
  let description = [{
    Runs when element types are final and all that looks at a composite as one op has looked: `ft.call` becomes the ops of its callee, in f32,
    between casts of the operands and results that have 16 bits. They are of the layer and phase of the call. The functions of composites go.
  }];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

#endif  // FT_COMPILER_COMPOSITES_PASSES
