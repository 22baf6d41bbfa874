#include "compiler/codegen/kernel.h"

#include "compiler/codegen/lowering.h"
#include "compiler/codegen/x86/cluster_kernel.h"
#include "compiler/codegen/x86/flat_code.h"
#include "compiler/codegen/x86/machine_code.h"

namespace ft::compiler {
namespace {

using namespace mlir;

KernelInterface interfaceOf(func::FuncOp body, const Space &space) {
  KernelInterface interface;
  interface.rows = space.rows();
  for (Value result : body.front().getTerminator()->getOperands())
    if (asColumnReduction(result)) // f32 or i32
      interface.partialBytes.push_back(space.blocks() * space.columns() * 4);
  if (!interface.partialBytes.empty()) {
    interface.blockRows = space.blockRows();
    interface.chunks = (space.columns() + kLanes - 1) / kLanes;
  }
  return interface;
}

} // namespace

llvm::StringRef nameOf(X86Level level) {
  switch (level) {
  case X86Level::V2:
    return "x86-64-v2";
  case X86Level::V3:
    return "x86-64-v3";
  case X86Level::V4:
    return "x86-64-v4";
  }
  return "";
}

FailureOr<KernelInterface> interfaceOf(func::FuncOp body) {
  FailureOr<Space> space = Space::of(body);
  if (failed(space))
    return failure();
  return interfaceOf(body, *space);
}

FailureOr<GeneratedKernel> generateKernel(func::FuncOp body, X86Level level) {
  FailureOr<Space> space = Space::of(body);
  if (failed(space))
    return failure();
  std::unique_ptr<MLIRContext> context = makeCodeContext();
  OwningOpRef<ModuleOp> module = buildClusterKernel(*context, body, *space, level);
  llvm::Expected<std::string> object = compileToObject(*module, level);
  if (!object)
    return body.emitOpError("gives no machine code: ") << llvm::toString(object.takeError());
  llvm::Expected<FlatCode> flat = flatten(*object);
  if (!flat)
    return body.emitOpError("gives no machine code that stands alone: ") << llvm::toString(flat.takeError());
  GeneratedKernel kernel;
  kernel.interface = interfaceOf(body, *space);
  kernel.code = std::move(flat->bytes);
  kernel.kernelOffset = flat->entries.lookup("kernel");
  kernel.combineOffset = flat->entries.lookup("combine");
  return kernel;
}

} // namespace ft::compiler
