// Every row of the table of elementwise primitives alone, as a body with numbers, and how exact it is.
#pragma once

#include "compiler/codegen/testing/code_test.h"
#include "runtime/base/elementwise.h"

namespace ft::compiler::testing {

/// Types of its operands (but for the condition of select), and parameters as text.
std::vector<std::string> elementsOf(const ElementwiseRow &row);
std::vector<std::string> parametersOf(const ElementwiseRow &row);

struct ElementwiseCase {
  const ElementwiseRow *row;
  std::string name; // of row, parameters and element
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<HostTensor> inputs;
  double parameters[2] = {};

  ElementwiseCase(mlir::MLIRContext &context, const ElementwiseRow &row, const std::string &element,
                  const std::string &parameters, Extents extents);
  mlir::func::FuncOp body() { return *module->getOps<mlir::func::FuncOp>().begin(); }
};

/// Against f64.
void compare(const ElementwiseCase &test, const HostTensor &got, bool fma);

/// Of every row in every type, and of every row in every shape, one type each.
void eachElementwiseCase(mlir::MLIRContext &context, llvm::ArrayRef<Extents> shapes,
                         llvm::function_ref<void(ElementwiseCase &)> visit);

} // namespace ft::compiler::testing
