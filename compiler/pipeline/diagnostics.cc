#include "compiler/pipeline/diagnostics.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

namespace ft::compiler {

using namespace mlir;

namespace {

/// "file:line:column: ", or nothing for an op that no file mentions.
std::string placeOf(Location loc) {
  std::string place;
  loc->walk([&](Location part) {
    auto file = dyn_cast<FileLineColLoc>(part);
    if (!file)
      return WalkResult::advance();
    place = file.getFilename().str() + ":" + std::to_string(file.getLine()) + ":" +
            std::to_string(file.getColumn()) + ": ";
    return WalkResult::interrupt();
  });
  return place;
}

std::string oneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

} // namespace

FirstError::FirstError(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error || !first.empty())
          return success();
        first = placeOf(diagnostic.getLocation()) + "error: " + oneLine(diagnostic.str());
        // Notes that show the whole op are for debuggers of the compiler.
        for (Diagnostic &note : diagnostic.getNotes())
          if (std::string text = note.str(); !StringRef(text).starts_with("see current operation"))
            first += "; " + placeOf(note.getLocation()) + oneLine(text);
        return success();
      }) {}

} // namespace ft::compiler
