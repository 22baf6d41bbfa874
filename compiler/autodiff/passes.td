#ifndef FT_COMPILER_AUTODIFF_PASSES
#define FT_COMPILER_AUTODIFF_PASSES

include "mlir/Pass/PassBase.td"

def AutodiffPass : Pass<"ft-autodiff", "::mlir::ModuleOp"> {
  let summary = "Appends the gradients of the loss: @forward becomes @train_step";
  let description = [{
    Reverse-mode differentiation of `@forward`, one op at a time from the last to the first, by the rules of
    DifferentiableOpInterface. The function is renamed to `@train_step` and still returns the loss. Its ops
    get `phase = "forward"`; gradient ops get `phase = "backward"` and the `layer` of the op they
    differentiate. For each trained parameter one `ft.gradient` says, as soon as the last contribution is in,
    which value its gradient is; a parameter that the loss does not depend on gets zeros, and a frozen
    parameter nothing.

    Integers carry no derivative, so a path through an op with integer results only (`ft.sample_bits`) ends
    there. Several uses of a value are summed from the last use to the first, into the `acc` operand of the
    gradient op where it has one. No op is built whose results nobody needs.

    Where a gradient reads a parameter that forward has transposed, cut or reshaped, the elements are moved again, in backward.

    The order of the gradient ops is the order in which they will run. An op with no derivative on a path
    from a trained parameter to the loss is refused.

    Backward begins with `gradient-factor`: 1 / micro-steps makes the sum over micro-steps a mean. With `loss-scale` it is
    multiplied by the scale of the input "scaler" (ft.loss_scale), so that no 16-bit gradient underflows; the
    optimizer divides by it again. With `mean` it is multiplied by the input "inverse_ranks": sums of gradients over ranks
    are means then, whatever type they are in. Without it the optimizer makes means of them.
  }];
  let options = [
    Option<"gradientFactor", "gradient-factor", "double", "1.0", "The gradient of the loss">,
    Option<"lossScale", "loss-scale", "bool", "false", "Multiply it by the loss scale">,
    Option<"mean", "mean", "bool", "false", "Divide it by the number of ranks">
  ];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

def VerifyAutodiffPass : Pass<"ft-verify-autodiff", "::mlir::ModuleOp"> {
  let summary = "Checks what differentiation leaves";
  let description = [{
    In `@train_step` every trained parameter has exactly one `ft.gradient` and a frozen one none; every op
    has a phase, "forward" or "backward"; no op without effects computes something that nobody uses in the
    backward phase.
  }];
}

#endif  // FT_COMPILER_AUTODIFF_PASSES
