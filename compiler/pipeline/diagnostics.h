// Diagnostics of MLIR as one line of text.
#pragma once

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace ft::compiler {

/// While it lives, keeps the first error of its context: "model.mlir:12:5: error: ..., see model.mlir:9:3:
/// ...".
class FirstError {
public:
  explicit FirstError(mlir::MLIRContext *context);

  /// Empty when there was none.
  const std::string &text() const { return first; }

  /// While this text is parsed, errors about names that MLIR leaves out say them, and what may have been
  /// meant. Empty from then on.
  void showNamesOf(llvm::StringRef text) { source = text; }

private:
  std::string first;
  llvm::StringRef source;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace ft::compiler
