#ifndef FT_SHARD_PASSES
#define FT_SHARD_PASSES

include "compiler/settings.td"
include "mlir/Pass/PassBase.td"

def FormUnitsPass : Pass<"ft-form-units", "::mlir::ModuleOp"> {
  let summary = "Group parameters into units and lay each unit out as one flat buffer";
  let description = [{
    Wrap policies. `transformer`: the parameters of one layer are one unit, named after it. `size`: layers in their order,
    joined until a unit has `min-num-params` elements. `names`: each layer that a pattern matches is a unit, all others
    together are "root". `none`: one unit, "root". Parameters below `persistence-threshold` elements form a unit that stays
    gathered ("small"); so do those of fewer than 100000 that have no rule of their own in a layer where others have one. Frozen parameters form units of their own, without gradient.
    Inside the flat buffer every parameter starts at a multiple of a block (1024 elements). The `ft.gradient`s of a unit become
    one `ft.pack`, right after the last of them is known.
  }];
  let options = FormUnitsSettings;
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

def VerifyUnitsPass : Pass<"ft-verify-units", "::mlir::ModuleOp"> {
  let summary = "Check what leaves the units stage: every parameter lies in one unit, none overlap, every trained unit has one flat gradient";
}

def InsertCollectivesPass : Pass<"ft-insert-collectives", "::mlir::ModuleOp"> {
  let summary = "Insert shards, gathers, releases and reductions as a row of the strategy table says";
  let description = [{
    Every use of a parameter becomes a view of its unit: of what the rank holds at rest, if that is the whole, or of a copy.
    Uses share a copy as long as no ops lie between them that use other units but not this one (released strategies)
    or always (kept ones). Flat gradients are summed over the ranks, and so is the loss; sums over slices are completed.
    Where parameters lie whole but are updated by slices, they are gathered again in place after the step. Each ft.unit
    says where its parts lie: `parameters`, `gradients`, `optimizer` ("whole", "slice"), `gathered`, `host_parameters`,
    `host_optimizer`.
  }];
  let options = [Option<"strategy", "strategy", "std::string", "\"full_shard\"", "Row of the strategy table">] #
                InsertCollectivesSettings;
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

def VerifyCollectivesPass : Pass<"ft-verify-collectives", "::mlir::ModuleOp"> {
  let summary = "Check what leaves the shard stage: every parameter is used through a view, every gather released after its last use, every gradient reduced";
}

#endif // FT_SHARD_PASSES
