// add, mul, scale, gelu, gelu_grad, swiglu, swiglu_grad.
#include "runtime/backends/cpu/routines/elementwise.h"

#include "fmt/format.h"
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/kernels/primitives.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/device/elementwise_operands.h"

namespace ft::cpu {
namespace {

// Floats of one type, a in the shape of the result: what there are loops without copies for.
KernelOr MakeBinary(const KernelContext& context, Elementwise kind,
                    void (*const routines[kFloatTypes])(const BinaryArgs&, int64_t, int64_t)) {
  FT_ASSIGN_OR_RETURN(const ElementwiseOperands operands,
                      CheckElementwise(RowOf(kind), context.operands, context.attributes));
  const ElementwiseOperand &a = operands.in[0], &b = operands.in[1];
  if (!operands.of_floats || a.dtype != b.dtype || a.dtype != operands.result_dtype ||
      a.period != operands.elements)
    return MakePrimitive(RowOf(kind), context);
  const BinaryArgs args = {a.data, b.data, operands.result, b.period};
  return MakeElementwise(routines[FloatIndex(a.dtype)], args, operands.elements, context.num_threads);
}

KernelOr MakeAdd(const KernelContext& context) {
  return MakeBinary(context, Elementwise::kAdd, context.routines.elementwise.add);
}
KernelOr MakeMul(const KernelContext& context) {
  return MakeBinary(context, Elementwise::kMul, context.routines.elementwise.mul);
}

KernelOr MakeUnary(const KernelContext& context,
                   void (*const routines[kFloatTypes])(const UnaryArgs&, int64_t, int64_t), double factor) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  const Tensor &x = context.in(0), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckSameShape(r, "result", x));
  const UnaryArgs args = {x.data, r.data, static_cast<float>(factor)};
  return MakeElementwise(routines[FloatIndex(x.dtype)], args, x.elements(), context.num_threads);
}

KernelOr MakeScale(const KernelContext& context) {
  if (context.operands.in.size() == 1 && context.operands.out.size() == 1 &&
      (!IsFloat(context.in(0).dtype) || context.in(0).dtype != context.out(0).dtype))
    return MakePrimitive(RowOf(Elementwise::kScale), context);
  FT_ASSIGN_OR_RETURN(const double factor, FloatIn(context.attributes, "factor"));
  return MakeUnary(context, context.routines.elementwise.scale, factor);
}

// Whether gelu is the tanh approximation.
absl::StatusOr<bool> IsTanh(const KernelAttributes& attributes) {
  const absl::StatusOr<std::string> approximate = attributes.String("approximate");
  if (!approximate.ok()) return approximate.status();
  if (*approximate == "tanh") return true;
  if (*approximate == "none") return false;
  return absl::InvalidArgumentError(
      fmt::format("attribute 'approximate' must be \"tanh\" or \"none\", got \"{}\"", *approximate));
}

KernelOr MakeGelu(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const bool tanh, IsTanh(context.attributes));
  const ElementwiseRoutines& routines = context.routines.elementwise;
  return MakeUnary(context, tanh ? routines.gelu_tanh : routines.gelu_erf, 1.0);
}

KernelOr MakeGeluGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const bool tanh, IsTanh(context.attributes));
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 2, 1));
  const Tensor &dy = context.in(0), &x = context.in(1), &dx = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(dy, "dy"));
  FT_RETURN_IF_ERROR(CheckSameShape(x, "x", dy));
  FT_RETURN_IF_ERROR(CheckSameShape(dx, "dx", dy));
  const UnaryGradArgs args = {dy.data, x.data, dx.data};
  const ElementwiseRoutines& routines = context.routines.elementwise;
  const auto& routine = tanh ? routines.gelu_tanh_grad : routines.gelu_erf_grad;
  return MakeElementwise(routine[FloatIndex(x.dtype)], args, x.elements(), context.num_threads);
}

KernelOr MakeSwiglu(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 2, 1));
  const Tensor &gate = context.in(0), &up = context.in(1), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(gate, "gate"));
  FT_RETURN_IF_ERROR(CheckSameShape(up, "up", gate));
  FT_RETURN_IF_ERROR(CheckSameShape(r, "result", gate));
  const SwigluArgs args = {gate.data, up.data, r.data};
  return MakeElementwise(context.routines.elementwise.swiglu[FloatIndex(gate.dtype)], args, gate.elements(),
                         context.num_threads);
}

KernelOr MakeSwigluGrad(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, 2));
  const Tensor& dy = context.in(0);
  FT_RETURN_IF_ERROR(CheckFloat(dy, "dy"));
  FT_RETURN_IF_ERROR(CheckSameShape(context.in(1), "gate", dy));
  FT_RETURN_IF_ERROR(CheckSameShape(context.in(2), "up", dy));
  FT_RETURN_IF_ERROR(CheckSameShape(context.out(0), "dgate", dy));
  FT_RETURN_IF_ERROR(CheckSameShape(context.out(1), "dup", dy));
  const SwigluGradArgs args = {dy.data, context.in(1).data, context.in(2).data, context.out(0).data,
                               context.out(1).data};
  return MakeElementwise(context.routines.elementwise.swiglu_grad[FloatIndex(dy.dtype)], args, dy.elements(),
                         context.num_threads);
}

}  // namespace

void RegisterElementwise(KernelRegistry& registry, Isa isa) {
  Add<MakeAdd>(registry, "add", isa);
  Add<MakeMul>(registry, "mul", isa);
  Add<MakeScale>(registry, "scale", isa);
  Add<MakeGelu>(registry, "gelu", isa);
  Add<MakeGeluGrad>(registry, "gelu_grad", isa);
  Add<MakeSwiglu>(registry, "swiglu", isa);
  Add<MakeSwigluGrad>(registry, "swiglu_grad", isa);
}

}  // namespace ft::cpu
