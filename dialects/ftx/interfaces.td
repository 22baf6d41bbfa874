// What the passes of the schedule ask of instructions that run beside `compute`.
#ifndef FTX_INTERFACES
#define FTX_INTERFACES

include "mlir/IR/OpBase.td"

def Ftx_BesideOpInterface : OpInterface<"BesideOpInterface"> {
  let cppNamespace = "::mlir::ftx";
  let description = [{
    A transfer or a kernel of the host: begins after all that stands before it on `compute`, runs on a stream of its own, and is waited for on `compute` by
    its token.
  }];
  let methods = [
    InterfaceMethod<"What its ftx.wait takes.", "::mlir::Value", "getToken">,
    InterfaceMethod<"Where it runs.", "::mlir::ftx::Stream", "getStream">,
    InterfaceMethod<"What it reads.", "::mlir::OperandRange", "getIns">,
    InterfaceMethod<"What it writes.", "::mlir::OperandRange", "getOuts">,
    InterfaceMethod<"Says why it stands where it stands.", "void", "setReasonAttr", (ins "::mlir::StringAttr":$reason)>
  ];
}

#endif  // FTX_INTERFACES
