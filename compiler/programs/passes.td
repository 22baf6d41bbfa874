#ifndef FT_PROGRAMS_PASSES
#define FT_PROGRAMS_PASSES

include "compiler/settings.td"
include "mlir/Pass/PassBase.td"

def MakeEvalStepPass : Pass<"ft-make-eval-step", "::mlir::ModuleOp"> {
  let summary = "Make @eval_step from @forward: the loss and named outputs, without dropout";
  let description = [{
    Runs before differentiation. @eval_step, of the same inputs, returns tensor<2xf32> = {loss * n, n}, n the number of targets
    that count (of examples, where the loss is no mean over targets), so that sums over ranks and batches weigh every target the
    same; and so each named output. @forward loses its outputs, and what only they need. With `accuracy` it returns that of the targets
    of a cross entropy that is the loss, too, where its logits are held anyway or there is a target for each example.
  }];
  let options = [Option<"accuracy", "accuracy", "bool", "false", "An output 'accuracy', of a plan that only evaluates">];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

def MakeSampleStepPass : Pass<"ft-make-sample-step", "::mlir::ModuleOp"> {
  let summary = "Make @sample_step from @forward: the logits of one position, without dropout";
  let description = [{
    Runs before differentiation. @sample_step, of the inputs that logits need, and of `sample_position`: tensor<i32>, returns what the cross entropy
    of @forward takes for the target of that position in each sequence, [batch, vocabulary]. Rows are chosen as far up as can be: of the operand of
    the last product, so that no logits of other positions are computed.
  }];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

def WeighLossPass : Pass<"ft-weigh-loss", "::mlir::ModuleOp"> {
  let summary = "Make the loss of @forward one that may be added up over ranks and micro-steps, where it is a mean over targets that count";
  let description = [{
    Runs when evaluation has its own function. A loss that is a mean over the targets of a batch that are not negative is multiplied by their share
    (ft.count_targets). The optimizer undoes it by what all ranks and micro-steps counted (ft.counted_mean), so that every target weighs the same
    wherever it lies. Other losses stay: each rank and micro-step weighs the same.
  }];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

def DropTrainingPass : Pass<"ft-drop-training", "::mlir::ModuleOp"> {
  let summary = "Drop @train_step and @train_micro, and what only they call";
  let description = [{ What is left evaluates: @init, @eval_step and, where there is one, @sample_step. }];
}

def MakeMicroStepPass : Pass<"ft-make-micro-step", "::mlir::ModuleOp"> {
  let summary = "Make @train_micro from @train_step: gradients and the loss are added up, nothing is updated";
  let description = [{
    Enters: @train_step with one ft.pack per trained unit, returning the loss. Leaves: a copy @train_micro that adds flat
    gradients, the loss and what it counts to sums (ft.accumulate) and returns nothing; in @train_step an ft.accumulated behind each
    ft.pack, the loss and the count, and the loss divided by the micro-steps. Gradients are divided where backward begins (ft-autodiff).
    With one micro-step nothing changes.
  }];
  let options = MakeMicroStepSettings;
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

def AccumulateInPlacePass : Pass<"ft-accumulate-in-place", "::mlir::ModuleOp"> {
  let summary = "Let the ops that make gradients add them to the sums over micro-steps";
  let description = [{
    Enters: @train_micro and @train_step with final types and without composites. Where a flat gradient is added to a sum (not what each micro-step has reduced),
    it lies in the place of the sum (`in_place`), and what makes it begins with a view of ft.accumulator: products, gradients of tables and of the
    linear cross entropy take it as their `acc`, the first of a chain that continue each other; for others, such as sums over rows, there is an ft.add behind
    them, which is in their cluster later. Where an op takes it, no micro-step goes over its gradient again. A gradient that is zero leaves the sum as it is.
  }];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

#endif // FT_PROGRAMS_PASSES
