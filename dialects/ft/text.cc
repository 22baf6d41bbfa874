#include "dialects/ft/text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <vector>

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include "runtime/base/did_you_mean.h"

namespace mlir::ft {

void printReal(llvm::raw_ostream &os, double value) {
  if (!std::isfinite(value)) {
    os << llvm::format_hex(llvm::bit_cast<uint64_t>(value), 18, /*Upper=*/true);
    return;
  }
  std::array<char, 32> buffer;
  // 500000.0 reads better than the shorter 5.0e+05.
  double size = std::abs(value);
  bool plain = size == 0 || (size >= 1e-4 && size < 1e9);
  auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format).ptr;
  llvm::StringRef text(buffer.data(), end - buffer.data());
  // MLIR's lexer wants a point in every float literal.
  auto [mantissa, exponent] = text.split('e');
  os << mantissa;
  if (!mantissa.contains('.'))
    os << ".0";
  if (!exponent.empty())
    os << 'e' << exponent;
}

FailureOr<FloatAttr> parseReal(AsmParser &parser) {
  double number = 0;
  if (parser.parseFloat(number))
    return failure();
  return parser.getBuilder().getF64FloatAttr(number);
}

ParseResult parseReal(OpAsmParser &parser, FloatAttr &value) {
  FailureOr<FloatAttr> parsed = parseReal(parser);
  if (failed(parsed))
    return failure();
  value = *parsed;
  return success();
}

void printReal(OpAsmPrinter &printer, Operation *, FloatAttr value) {
  printReal(printer.getStream(), value.getValueAsDouble());
}

ParseResult parseRounding(OpAsmParser &parser, Type &from, Type &to) {
  if (parser.parseType(from))
    return failure();
  to = from;
  return success(failed(parser.parseOptionalArrow()) || succeeded(parser.parseType(to)));
}

void printRounding(OpAsmPrinter &printer, Operation *, Type from, Type to) {
  printer << from;
  if (from != to)
    printer << " -> " << to;
}

std::string shapeText(llvm::ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "scalar";
  return llvm::join(llvm::map_range(shape, [](int64_t extent) { return std::to_string(extent); }), "x");
}

std::string shapeText(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return shapeText(tensor.getShape());
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

llvm::StringRef nearestName(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> candidates) {
  std::vector<std::string_view> views(candidates.begin(), candidates.end());
  return ::ft::NearestName(name, views);
}

} // namespace mlir::ft
