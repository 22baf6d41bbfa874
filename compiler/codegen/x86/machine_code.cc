#include "compiler/codegen/x86/machine_code.h"

#include <mutex>

#include "compiler/codegen/lowering.h"
#include "llvm/Support/TargetSelect.h"

namespace ft::compiler {
namespace {

using namespace mlir;

void initializeX86() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
}

// Vectors of 512 bits as such where there are any; loops are never made into calls of memcpy or memset.
void annotate(llvm::Module &module, X86Level level) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.addFnAttr("no-builtins");
    function.addFnAttr("target-cpu", nameOf(level));
    function.addFnAttr("min-legal-vector-width", "512");
    function.addFnAttr("prefer-vector-width", "512");
  }
}

} // namespace

llvm::Expected<std::string> compileToObject(ModuleOp module, X86Level level) {
  initializeX86();
  auto machine = makeTargetMachine("x86_64-unknown-linux-gnu", nameOf(level), "");
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  auto code = translateToLlvm(module, context, **machine);
  if (!code)
    return code.takeError();
  annotate(**code, level);
  optimize(**code, **machine);
  return emitFile(**code, **machine, llvm::CodeGenFileType::ObjectFile);
}

} // namespace ft::compiler
