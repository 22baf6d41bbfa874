// Names of values in printed text: what comes from a parameter is called after it.
#include "dialects/ft/dialect.h"

namespace mlir::ft {
namespace {

// The last two parts of a dotted name: "transformer.h.0.attn.c_attn.weight" gives "c_attn.weight".
llvm::StringRef shortName(llvm::StringRef dotted) {
  size_t last = dotted.rfind('.');
  if (last == llvm::StringRef::npos)
    return dotted;
  size_t before = dotted.take_front(last).rfind('.');
  return before == llvm::StringRef::npos ? dotted : dotted.drop_front(before + 1);
}

} // namespace

void GetOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getValue(), shortName(getParameter())); }

void ViewOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getValue(), shortName(getParameter()));
}

void InputOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getValue(), getName()); }

} // namespace mlir::ft
