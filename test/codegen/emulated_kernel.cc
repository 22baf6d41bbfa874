#include "test/codegen/emulated_kernel.h"

#include <gtest/gtest.h>

#include "compiler/codegen/cluster_body.h"
#include "compiler/codegen/ptx/ptx_code.h"
#include "compiler/codegen/testing/guarded_run.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"
#include "test/codegen/host_intrinsics.h"
#include "test/doubles/cuda/launch.h"

namespace ft::compiler::testing {
namespace {

using namespace mlir;
namespace orc = llvm::orc;
namespace emulation = ::ft::cuda::emulation;

llvm::Expected<std::unique_ptr<orc::LLJIT>> makeJit() {
  static const bool initialized =
      !llvm::InitializeNativeTarget() && !llvm::InitializeNativeTargetAsmPrinter();
  if (!initialized) return llvm::createStringError("LLVM makes no code for this machine");
  auto host = orc::JITTargetMachineBuilder::detectHost();
  if (!host) return host.takeError();
  host->getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
  auto jit = orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(*host)).create();
  if (!jit) return jit;
  orc::SymbolMap symbols;
  for (const HostFunction& function : hostFunctions())
    symbols[(*jit)->mangleAndIntern(function.name)] = {orc::ExecutorAddr::fromPtr(function.address),
                                                       llvm::JITSymbolFlags::Exported};
  if (llvm::Error error = (*jit)->getMainJITDylib().define(orc::absoluteSymbols(std::move(symbols))))
    return error;
  return jit;
}

}  // namespace

EmulatedKernel::EmulatedKernel() = default;
EmulatedKernel::EmulatedKernel(EmulatedKernel&&) = default;
EmulatedKernel::~EmulatedKernel() = default;

llvm::Expected<EmulatedKernel> EmulatedKernel::of(func::FuncOp body, bool watched) {
  FailureOr<ClusterBody> cluster = clusterBodyOf(body);
  if (failed(cluster)) return llvm::createStringError("no body of a cluster");
  auto machine = makePtxMachine();
  if (!machine) return machine.takeError();
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = buildGpuModule(*cluster, **machine, *context);
  if (!module) return module.takeError();
  auto jit = makeJit();
  if (!jit) return jit.takeError();
  if (llvm::Error error = replaceIntrinsics(**module, watched)) return error;
  (*module)->setTargetTriple((*jit)->getTargetTriple());
  (*module)->setDataLayout((*jit)->getDataLayout());
  if (llvm::Error error = (*jit)->addIRModule(orc::ThreadSafeModule(std::move(*module), std::move(context))))
    return error;
  EmulatedKernel kernel;
  kernel.interface_ = compiler::ptxInterfaceOf(*cluster);
  kernel.partials_.assign(cluster->PartialOffsets(0).size() - 1, kernel.interface_.partialBytes);
  kernel.draws_ = cluster->Draws();
  kernel.code_ = std::move(*jit);
  return kernel;
}

std::string EmulatedKernel::launch(const char* name, const GpuLaunch& launch, void* const* operands) const {
  auto entry = code_->lookup(std::string(name) + kCallSuffix);
  if (!entry) return llvm::toString(entry.takeError());
  auto thread = [&] { entry->toPtr<void (*)(void* const*)>()(operands); };
  const cuda::LaunchShape shape = {.grid_x = static_cast<unsigned>(launch.blocks),
                                   .block_x = static_cast<unsigned>(launch.threads),
                                   .shared_bytes = static_cast<size_t>(launch.sharedBytes)};
  const int error = emulation::Enqueue(shape, nullptr, entry->toPtr<void*>(), thread);
  return error == emulation::kSuccess ? "" : emulation::LastMessage();
}

std::string EmulatedKernel::call(void* const* operands, bool descending, int64_t spaces) const {
  emulation::SetOrder(descending ? emulation::Order::kDescending : emulation::Order::kAscending);
  GpuLaunch kernel = interface_.kernel;
  kernel.blocks *= spaces;
  std::string problem = launch("kernel", kernel, operands);
  if (problem.empty() && interface_.combine.blocks != 0)
    problem = launch("combine", interface_.combine, operands);
  emulation::SetOrder(emulation::Order::kAscending);
  return problem;
}

std::vector<HostTensor> runEmulated(func::FuncOp body, const std::vector<HostTensor>& inputs, bool watched) {
  auto kernel = EmulatedKernel::of(body, watched);
  if (!kernel) {
    ADD_FAILURE() << llvm::toString(kernel.takeError());
    return {};
  }
  auto types =
      llvm::map_to_vector(body.getResultTypes(), [](Type type) { return cast<RankedTensorType>(type); });
  std::vector<std::string> results[2];
  for (bool descending : {false, true})
    results[descending] =
        runGuarded(inputs, types, kernel->partials(), kernel->draws(),
                   [&](void* const* operands) { EXPECT_EQ(kernel->call(operands, descending), ""); });
  EXPECT_EQ(results[0].size(), types.size()) << "wrote beside its results";
  EXPECT_TRUE(results[0] == results[1]) << "the order of threads changes bits";
  std::vector<HostTensor> tensors;
  for (auto [type, bytes] : llvm::zip(types, results[0])) {
    tensors.emplace_back(type);
    tensors.back().fromMemory(bytes.data());
  }
  return tensors;
}

}  // namespace ft::compiler::testing
