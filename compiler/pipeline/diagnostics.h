// Diagnostics of MLIR as one line of text.
#pragma once

#include "mlir/IR/Diagnostics.h"

#include <string>

namespace ft::compiler {

/// While it lives, keeps the first error of its context: "model.mlir:12:5: error: ..., see model.mlir:9:3:
/// ...".
class FirstError {
public:
  explicit FirstError(mlir::MLIRContext *context);

  /// Empty when there was none.
  const std::string &text() const { return first; }

private:
  std::string first;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace ft::compiler
