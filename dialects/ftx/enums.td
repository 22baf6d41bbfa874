// The enumerations of the ftx dialect; those of dialects/ft/enums.td are its own as well.
#ifndef FTX_ENUMS
#define FTX_ENUMS

include "mlir/IR/EnumAttr.td"

// Numbers and names as in plan.proto.
class Ftx_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::ftx";
}

def Ftx_MemoryClass : Ftx_Enum<"MemoryClass", "what a buffer is for", [
  I32EnumAttrCase<"parameters", 0>, I32EnumAttrCase<"gradients", 1>, I32EnumAttrCase<"optimizer_state", 2>,
  I32EnumAttrCase<"activations", 3>, I32EnumAttrCase<"gathered", 4>, I32EnumAttrCase<"staging", 5>,
  I32EnumAttrCase<"workspace", 6>, I32EnumAttrCase<"io", 7>]>;
def Ftx_SizeKind : Ftx_Enum<"SizeKind", "how a size depends on the mesh", [
  I32EnumAttrCase<"constant", 0>, I32EnumAttrCase<"unit_full", 1>, I32EnumAttrCase<"unit_slice", 2>,
  I32EnumAttrCase<"share", 3>]>;
def Ftx_Stream : Ftx_Enum<"Stream", "queue of instructions that run in order", [
  I32EnumAttrCase<"compute", 0>, I32EnumAttrCase<"gather", 1>, I32EnumAttrCase<"reduce", 2>,
  I32EnumAttrCase<"h2d", 3>, I32EnumAttrCase<"d2h", 4>, I32EnumAttrCase<"host_compute", 5>,
  I32EnumAttrCase<"replica", 6>]>;
def Ftx_Transfer : Ftx_Enum<"Transfer", "what moves data between ranks or memory spaces", [
  I32EnumAttrCase<"all_gather", 1>, I32EnumAttrCase<"reduce_scatter", 2>, I32EnumAttrCase<"all_reduce", 3>,
  I32EnumAttrCase<"copy", 6>, I32EnumAttrCase<"all_to_all", 7>]>;

#endif // FTX_ENUMS
