#include "runtime/backends/cuda/register.h"
#include "runtime/kernels/accumulate/cuda_device.h"
#include "runtime/kernels/accumulate/operands.h"

namespace ft::cuda {
namespace {

AccumulateArgs ArgsOf(const AccumulateOperands& read) {
  return {read.x.data, read.state.data, read.result, read.x.dtype, read.x.elements()};
}

KernelOr MakeAccumulate(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const AccumulateOperands read, ReadAccumulate(context.operands));
  return MakeKernel([args = ArgsOf(read)](StreamHandle stream) { return Accumulate(args, stream); });
}

KernelOr MakeAccumulated(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const AccumulateOperands read, ReadAccumulated(context.operands));
  return MakeKernel([args = ArgsOf(read)](StreamHandle stream) { return Accumulated(args, stream); });
}

}  // namespace

void RegisterAccumulate(KernelTable& table) {
  table.Add("accumulate", MakeAccumulate);
  table.Add("accumulated", MakeAccumulated);
}

}  // namespace ft::cuda
