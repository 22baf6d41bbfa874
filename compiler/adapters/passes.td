#ifndef FT_ADAPTERS_PASSES
#define FT_ADAPTERS_PASSES

include "compiler/settings.td"
include "mlir/Pass/PassBase.td"

def InsertLoraPass : Pass<"ft-insert-lora", "::mlir::ModuleOp"> {
  let summary = "Put low-rank adapters beside the weights of products, and freeze all else";
  let description = [{
    E. Hu and others, "LoRA: Low-Rank Adaptation of Large Language Models", 2021. Each product x W of a weight that is a target becomes
    x W + s (dropout(x) A^T) B^T, with A [rank, in], B [out, rank], and s = alpha / rank, or alpha / sqrt(rank) with `lora-rslora`
    (D. Kalajdzievski, 2023). A starts evenly in [-1 / sqrt(in), 1 / sqrt(in)), B with zeros, as PEFT has it; s is applied to the
    [..., rank] product. They are called as in PEFT: the weight "m.weight" of a module m has "m.lora_A.weight" and "m.lora_B.weight".

    A target is a module by its name or the end of it ("q_proj"), a glob of one of the two, or "all-linear": every weight that can have adapters but
    those of the output layer and of routers. Weights can where all that reads them are products with them as the second factor, once. Parameters of modules that
    `lora-save` names stay trained, whole. What was done is said in the attribute 'ft.lora' of the module.
  }];
  let options = InsertLoraSettings;
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

#endif // FT_ADAPTERS_PASSES
