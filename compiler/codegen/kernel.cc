#include "compiler/codegen/kernel.h"

#include "compiler/codegen/lowering.h"
#include "compiler/codegen/x86/cluster_kernel.h"
#include "compiler/codegen/x86/flat_code.h"
#include "compiler/codegen/x86/machine_code.h"

namespace ft::compiler {

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

llvm::Expected<GeneratedKernel> generateKernel(const ClusterBody &body, X86Level level) {
  std::unique_ptr<mlir::MLIRContext> context = makeCodeContext();
  mlir::OwningOpRef<mlir::ModuleOp> module = buildClusterKernel(*context, body, level);
  llvm::Expected<std::string> object = compileToObject(*module, level);
  if (!object)
    return object.takeError();
  llvm::Expected<FlatCode> flat = flatten(*object);
  if (!flat)
    return flat.takeError();
  return GeneratedKernel{std::move(flat->bytes), flat->entries.lookup("kernel"),
                         flat->entries.lookup("combine")};
}

} // namespace ft::compiler
