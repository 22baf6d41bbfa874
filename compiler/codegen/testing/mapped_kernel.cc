#include "compiler/codegen/testing/mapped_kernel.h"

#include <sys/mman.h>

#include <cstring>

#include "compiler/codegen/cluster_body.h"
#include "compiler/codegen/testing/guarded_run.h"

namespace ft::compiler::testing {
namespace {

using namespace mlir;

KernelInterface factsOf(const ClusterBody &body) {
  KernelInterface interface = {.rows = body.rows, .partialBytes = {}, .draws = body.Draws()};
  if (!body.HasPartials())
    return interface;
  interface.blockRows = body.BlockRows();
  interface.chunks = (body.columns + kClusterLanes - 1) / kClusterLanes;
  interface.partialBytes.assign(body.PartialOffsets(0).size() - 1, body.PartialBytesEach());
  return interface;
}

} // namespace

FailureOr<KernelInterface> interfaceOf(func::FuncOp function) {
  FailureOr<ClusterBody> body = clusterBodyOf(function);
  if (failed(body))
    return failure();
  return factsOf(*body);
}

FailureOr<GeneratedKernel> generateKernel(func::FuncOp function, X86Level level) {
  FailureOr<ClusterBody> body = clusterBodyOf(function);
  if (failed(body))
    return failure();
  llvm::Expected<compiler::GeneratedKernel> kernel = compiler::generateKernel(*body, level);
  if (!kernel)
    return function.emitOpError("gives no machine code: ") << llvm::toString(kernel.takeError());
  return GeneratedKernel{factsOf(*body), std::move(kernel->code), kernel->kernelOffset,
                         kernel->combineOffset};
}

FailureOr<PtxInterface> ptxInterfaceOf(func::FuncOp function) {
  FailureOr<ClusterBody> body = clusterBodyOf(function);
  if (failed(body))
    return failure();
  return compiler::ptxInterfaceOf(*body);
}

FailureOr<PtxKernel> generatePtx(func::FuncOp function) {
  FailureOr<ClusterBody> body = clusterBodyOf(function);
  if (failed(body))
    return failure();
  llvm::Expected<PtxKernel> kernel = compiler::generatePtx(*body);
  if (!kernel)
    return function.emitOpError("gives no PTX: ") << llvm::toString(kernel.takeError());
  return std::move(*kernel);
}

bool canRun(X86Level level) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  switch (level) {
  case X86Level::V2:
    return __builtin_cpu_supports("x86-64-v2");
  case X86Level::V3:
    return __builtin_cpu_supports("x86-64-v3");
  case X86Level::V4:
    return __builtin_cpu_supports("x86-64-v4");
  }
#endif
  return false;
}

MappedKernel::MappedKernel(GeneratedKernel code) : kernel(std::move(code)), size(kernel.code.size()) {
  memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(memory, kernel.code.data(), size);
  mprotect(memory, size, PROT_READ | PROT_EXEC);
}

MappedKernel::~MappedKernel() { munmap(memory, size); }

void MappedKernel::call(void *const *operands, int64_t rows) const {
  const KernelInterface &interface = kernel.interface;
  int64_t step = (rows + interface.blockRows - 1) / interface.blockRows * interface.blockRows;
  for (int64_t begin = 0; begin < interface.rows; begin += step)
    at(kernel.kernelOffset)(operands, begin, std::min(begin + step, interface.rows));
  for (int64_t chunk = 0; chunk < interface.chunks; ++chunk)
    at(kernel.combineOffset)(operands, chunk, chunk + 1);
}

std::vector<std::string> runOn(const MappedKernel &kernel, const std::vector<HostTensor> &inputs,
                               llvm::ArrayRef<mlir::RankedTensorType> results, int64_t rows) {
  return runGuarded(inputs, results, kernel.interface().partialBytes, kernel.interface().draws,
                    [&](void *const *operands) { kernel.call(operands, rows); });
}

} // namespace ft::compiler::testing
