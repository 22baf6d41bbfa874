#include "runtime/backends/cuda/kernels/primitives.h"

#include "runtime/backends/cuda/register.h"
#include "runtime/backends/cuda/routines/primitives.h"
#include "runtime/device/elementwise_operands.h"

namespace ft::cuda {
namespace {

template <Elementwise kKind>
KernelOr MakeRow(const KernelContext& context) {
  return MakePrimitive(RowOf(kKind), context);
}

KernelOr MakeConvert(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const ConvertOperands operands, CheckConvert(context.operands));
  const ConvertArgs args = {operands.x, operands.result, operands.elements, operands.from, operands.to};
  return MakeKernel([args](StreamHandle stream) { return Convert(args, stream); });
}

}  // namespace

KernelOr MakePrimitive(const ElementwiseRow& row, const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const ElementwiseOperands operands,
                      CheckElementwise(row, context.operands, context.attributes));
  PrimitiveArgs args = {.kind = row.kind,
                        .count = operands.count,
                        .in = {},
                        .r = operands.result,
                        .dtype = operands.result_dtype,
                        .elements = operands.elements,
                        .p = operands.parameters[0],
                        .q = operands.parameters[1]};
  for (int i = 0; i < operands.count; ++i)
    args.in[i] = {operands.in[i].data, operands.in[i].period, operands.in[i].dtype};
  return MakeKernel([args, of_floats = operands.of_floats](StreamHandle stream) {
    return Primitive(args, of_floats, stream);
  });
}

void RegisterPrimitives(KernelTable& table) {
#define FT_ELEMENTWISE(Name, mnemonic, domain, operands, parameters, value, gradients, summary) \
  if (table.Find(#mnemonic) == nullptr) table.Add(#mnemonic, &MakeRow<Elementwise::k##Name>);
#include "runtime/base/elementwise.def"
#undef FT_ELEMENTWISE
  table.Add("convert", &MakeConvert);
}

}  // namespace ft::cuda
