// The elementwise primitives as ops: one class template, an instance for each row of
// runtime/base/elementwise.def.
//
// Operands have the shape of the result or its last dimensions, and then are repeated; one operand at least
// has all of them. Parameters are f64 attributes under the names of the row.
//
//   %y = ft.exp %x : tensor<2x3xf32>
//   %y = ft.clamp %x, -1.0, 1.0 : tensor<2x3xf32>
//   %y = ft.select %keep, %x, %zero : tensor<2x3xi1>, tensor<2x3xf32>, tensor<f32>
#pragma once

#include "dialects/ft/dialect.h"
#include "runtime/base/elementwise.h"

namespace mlir::ft {

using ::ft::Elementwise;
using ::ft::ElementwiseDomain;
using ::ft::ElementwiseRow;

// What all instances do, by the row.
namespace elementwise {

// That of operands of these types when nothing else is said: the largest shape, the element type of the first
// operand that has it (i1 for comparisons, that of the values for select). Null when the number of operands
// is wrong or one is no ranked tensor.
Type inferType(const ElementwiseRow &row, TypeRange operands);
void build(const ElementwiseRow &row, OpBuilder &builder, OperationState &state, Type result,
           ValueRange operands, ArrayRef<double> parameters);
ParseResult parse(const ElementwiseRow &row, OpAsmParser &parser, OperationState &state);
void print(const ElementwiseRow &row, Operation *op, OpAsmPrinter &printer);
LogicalResult verify(const ElementwiseRow &row, Operation *op);
OpFoldResult fold(const ElementwiseRow &row, Operation *op);
llvm::SmallVector<Value> buildGradient(const ElementwiseRow &row, Operation *op, OpBuilder &builder, Value dy,
                                       ArrayRef<bool> needed);
// An operand of the result's type, whose buffer it may take over; null when there is none.
Value reusableOperand(Operation *op);
// Of parameter 0 or 1.
double parameter(const ElementwiseRow &row, Operation *op, unsigned index);

} // namespace elementwise

template <typename ConcreteOp>
using ElementwiseOpBase =
    Op<ConcreteOp, OpTrait::ZeroRegions, OpTrait::OneResult, OpTrait::OneTypedResult<RankedTensorType>::Impl,
       OpTrait::ZeroSuccessors, OpTrait::VariadicOperands, ConditionallySpeculatable::Trait,
       OpTrait::AlwaysSpeculatableImplTrait, MemoryEffectOpInterface::Trait, CheapToRecompute,
       CostOpInterface::Trait, KernelOpInterface::Trait, PrecisionOpInterface::Trait,
       DifferentiableOpInterface::Trait, ExtentOpInterface::Trait>;

template <Elementwise kKind> class ElementwiseOp : public ElementwiseOpBase<ElementwiseOp<kKind>> {
public:
  using Base = ElementwiseOpBase<ElementwiseOp>;
  using Base::Base;
  static constexpr const ElementwiseRow &row() { return ::ft::RowOf(kKind); }

  static constexpr StringLiteral getOperationName() { return name; }
  static ArrayRef<StringRef> getAttributeNames() {
    static const llvm::SmallVector<StringRef, 2> names = [] {
      llvm::SmallVector<StringRef, 2> result;
      for (int i = 0; i < row().num_parameters(); ++i)
        result.push_back(row().parameters[i]);
      return result;
    }();
    return names;
  }

  // One for each operand of the row.
  Value getA() { return this->getOperation()->getOperand(0); }
  Value getB() { return this->getOperation()->getOperand(1); }
  double getParameter(unsigned index = 0) { return elementwise::parameter(row(), *this, index); }

  static void build(OpBuilder &builder, OperationState &state, Type result, ValueRange operands,
                    ArrayRef<double> parameters = {}) {
    elementwise::build(row(), builder, state, result, operands, parameters);
  }
  // With the type of `inferType`.
  static void build(OpBuilder &builder, OperationState &state, ValueRange operands,
                    ArrayRef<double> parameters = {}) {
    elementwise::build(row(), builder, state, elementwise::inferType(row(), operands.getTypes()), operands,
                       parameters);
  }
  template <typename... Arguments>
  static ElementwiseOp create(OpBuilder &builder, Location loc, Arguments &&...arguments) {
    OperationState state(loc, getOperationName());
    build(builder, state, std::forward<Arguments>(arguments)...);
    return cast<ElementwiseOp>(builder.create(state));
  }

  static ParseResult parse(OpAsmParser &parser, OperationState &state) {
    return elementwise::parse(row(), parser, state);
  }
  void print(OpAsmPrinter &printer) { elementwise::print(row(), *this, printer); }
  LogicalResult verify() { return elementwise::verify(row(), *this); }
  OpFoldResult fold(ArrayRef<Attribute>) { return elementwise::fold(row(), *this); }

  void getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &) {}
  uint64_t getFlops() { return cast<RankedTensorType>(this->getResult().getType()).getNumElements(); }
  Value getReusableOperand(unsigned) { return elementwise::reusableOperand(*this); }
  ElementRole getElementRole(unsigned) {
    return kKind == Elementwise::kAdd || kKind == Elementwise::kScale ? ElementRole::Sum
                                                                      : ElementRole::Activation;
  }
  llvm::SmallVector<Value> buildGradient(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                                         ValueRange, SmallVectorImpl<bool> &) {
    return elementwise::buildGradient(row(), *this, builder, resultGrads[0], needed);
  }
  bool isFlat() { return row().flat; }

private:
  static constexpr StringLiteral name = [] {
    switch (kKind) {
#define FT_ELEMENTWISE(Name, mnemonic, domain, operands, parameters, value, gradients, summary)              \
  case Elementwise::k##Name:                                                                                 \
    return StringLiteral("ft." #mnemonic);
#include "runtime/base/elementwise.def"
#undef FT_ELEMENTWISE
    }
    return StringLiteral("");
  }();
};

#define FT_ELEMENTWISE(Name, mnemonic, domain, operands, parameters, value, gradients, summary)              \
  using Name##Op = ElementwiseOp<Elementwise::k##Name>;
#include "runtime/base/elementwise.def"
#undef FT_ELEMENTWISE

} // namespace mlir::ft
