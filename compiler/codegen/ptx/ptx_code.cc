#include "compiler/codegen/ptx/ptx_code.h"

#include <mutex>

#include "compiler/codegen/lowering.h"
#include "compiler/codegen/ptx/gpu_kernel.h"
#include "compiler/codegen/ptx/row_registers.h"
#include "llvm/Support/TargetSelect.h"

namespace ft::compiler {
namespace {

using namespace mlir;

void initializeNvptx() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

// Entries, for blocks of exactly so many threads.
void annotate(llvm::Module &module, const ClusterBody &body) {
  PtxInterface interface = ptxInterfaceOf(body);
  RowRegisters registers = RowRegisters::of(BodyFacts(body), ThreadPlan::of(body));
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    bool isKernel = function.getName() == "kernel";
    const GpuLaunch &launch = isKernel ? interface.kernel : interface.combine;
    function.setCallingConv(llvm::CallingConv::PTX_Kernel);
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.addFnAttr("no-builtins");
    function.addFnAttr("nvvm.reqntid", std::to_string(launch.threads));
    if (int64_t blocks = isKernel ? registers.blocks : 1)
      function.addFnAttr("nvvm.minctasm", std::to_string(blocks));
  }
}

} // namespace

llvm::Expected<std::unique_ptr<llvm::TargetMachine>> makePtxMachine() {
  initializeNvptx();
  return makeTargetMachine("nvptx64-nvidia-cuda", "sm_80", "+ptx80");
}

llvm::Expected<std::unique_ptr<llvm::Module>>
buildGpuModule(const ClusterBody &body, llvm::TargetMachine &machine, llvm::LLVMContext &context) {
  std::unique_ptr<MLIRContext> codeContext = makeCodeContext();
  OwningOpRef<ModuleOp> module = buildGpuKernel(*codeContext, body);
  auto code = translateToLlvm(*module, context, machine);
  if (!code)
    return code.takeError();
  annotate(**code, body);
  optimize(**code, machine);
  return code;
}

llvm::Expected<PtxKernel> generatePtx(const ClusterBody &body) {
  auto machine = makePtxMachine();
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  auto module = buildGpuModule(body, **machine, context);
  if (!module)
    return module.takeError();
  auto ptx = emitFile(**module, **machine, llvm::CodeGenFileType::AssemblyFile);
  if (!ptx)
    return ptx.takeError();
  return PtxKernel{ptxInterfaceOf(body), std::move(*ptx)};
}

} // namespace ft::compiler
