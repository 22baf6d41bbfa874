#include "compiler/codegen/ptx/ptx_code.h"

#include <mutex>

#include "compiler/codegen/lowering.h"
#include "compiler/codegen/ptx/gpu_kernel.h"
#include "compiler/codegen/ptx/thread_plan.h"
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

// Whether ptxas is told to care for one block a multiprocessor. Or else it spills a register or two where one
// more would fit. Of the largest blocks most spill where it is said, but not those that sum up rows of one
// input.
bool isForOneBlock(const GpuLaunch &launch, const ClusterBody &body) {
  auto hasColumns = [](const ClusterBody::Read &read) { return read.place.column_stride != 0; };
  return launch.threads < kMostThreads || (body.HasPartials() && llvm::count_if(body.reads, hasColumns) == 1);
}

// Entries, for blocks of exactly so many threads.
void annotate(llvm::Module &module, const ClusterBody &body) {
  PtxInterface interface = ptxInterfaceOf(body);
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    const GpuLaunch &launch = function.getName() == "kernel" ? interface.kernel : interface.combine;
    function.setCallingConv(llvm::CallingConv::PTX_Kernel);
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.addFnAttr("no-builtins");
    function.addFnAttr("nvvm.reqntid", std::to_string(launch.threads));
    if (isForOneBlock(launch, body))
      function.addFnAttr("nvvm.minctasm", "1");
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
