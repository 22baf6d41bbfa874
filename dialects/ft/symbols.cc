#include "dialects/ft/symbols.h"

namespace mlir::ft {

func::FuncOp functionOf(Operation *op, FlatSymbolRefAttr name) {
  Operation *table = SymbolTable::getNearestSymbolTable(op);
  if (table)
    for (Operation &each : llvm::reverse(table->getRegion(0).front()))
      if (auto function = dyn_cast<func::FuncOp>(each);
          function && function.getSymNameAttr() == name.getAttr())
        return function;
  return {};
}

} // namespace mlir::ft

namespace mlir::ft::verify {
namespace {

template <typename SymbolOp>
SymbolOp find(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name, llvm::StringRef what) {
  if (auto found = symbols.lookupNearestSymbolFrom<SymbolOp>(op, name))
    return found;
  llvm::SmallVector<llvm::StringRef> names;
  if (Operation *table = SymbolTable::getNearestSymbolTable(op))
    for (auto candidate : table->getRegion(0).getOps<SymbolOp>())
      names.push_back(candidate.getSymName());
  InFlightDiagnostic error = op->emitOpError() << "there is no " << what << " " << name;
  if (llvm::StringRef near = nearestName(name.getValue(), names); !near.empty())
    error << "; did you mean " << FlatSymbolRefAttr::get(op->getContext(), near) << "?";
  error.report();
  return nullptr;
}

} // namespace

ParameterOp parameter(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name) {
  return find<ParameterOp>(op, symbols, name, "ft.parameter");
}

UnitOp unit(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name) {
  return find<UnitOp>(op, symbols, name, "ft.unit");
}

func::FuncOp function(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name) {
  return find<func::FuncOp>(op, symbols, name, "function");
}

} // namespace mlir::ft::verify
