#include "runtime/backends/cuda/register.h"
#include "runtime/kernels/accumulate/cuda_device.h"
#include "runtime/kernels/accumulate/operands.h"

namespace ft::cuda {
namespace {

KernelOr MakeSums(const AccumulateOperands& read) {
  const AccumulateArgs args = {read.x.data,      read.state.data,   read.result.data,     read.x.dtype,
                               read.state.dtype, read.result.dtype, read.state.elements()};
  return MakeKernel([args](StreamHandle stream) { return Accumulate(args, stream); });
}

KernelOr MakeAccumulate(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const AccumulateOperands read, ReadAccumulate(context.operands));
  return MakeSums(read);
}

KernelOr MakeAccumulated(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const AccumulateOperands read, ReadAccumulated(context.operands));
  return MakeSums(read);
}

}  // namespace

void RegisterAccumulate(KernelTable& table) {
  table.Add("accumulate", MakeAccumulate);
  table.Add("accumulated", MakeAccumulated);
}

}  // namespace ft::cuda
