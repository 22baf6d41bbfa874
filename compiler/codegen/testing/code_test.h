// What tests of generated code share: bodies from text, numbers, and running them at every level.
#pragma once

#include <gtest/gtest.h>

#include <map>

#include "compiler/codegen/testing/body_reference.h"
#include "compiler/codegen/testing/mapped_kernel.h"
#include "dialects/ft/dialect.h"
#include "mlir/Parser/Parser.h"

namespace ft::compiler::testing {

struct Extents {
  int64_t rows, columns;
};
inline constexpr Extents kShapes[] = {{1, 1}, {3, 17}, {5, 771}, {64, 768}, {2, 50257}};

/// A body of bodies.h for these; one func.func.
mlir::OwningOpRef<mlir::ModuleOp> parseBody(mlir::MLIRContext &context, llvm::StringRef text, Extents extents,
                                            llvm::StringRef element);

/// Of the same numbers, always: about evenly in [-2, 2], or in [0.25, 2].
std::vector<double> numbers(size_t count, uint64_t seed, bool positive = false);

class CodeTest : public ::testing::Test {
protected:
  CodeTest();

  /// Null where it does not parse.
  mlir::func::FuncOp parse(llvm::StringRef text, Extents extents = {1, 1}, llvm::StringRef element = "f32");
  /// Results at each level that this machine has; code is made for the others too. The test fails where calls
  /// for a few rows give other bits than one for all, or v4 others than v3.
  std::map<X86Level, std::vector<HostTensor>> run(mlir::func::FuncOp body,
                                                  const std::vector<HostTensor> &inputs);

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace ft::compiler::testing
