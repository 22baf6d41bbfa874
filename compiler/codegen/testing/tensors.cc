#include "compiler/codegen/testing/tensors.h"

#include <cmath>
#include <cstring>

#include "llvm/ADT/APFloat.h"

namespace ft::compiler::testing {
namespace {

using namespace mlir;

llvm::APFloat inType(double value, FloatType type) {
  llvm::APFloat number(static_cast<float>(value)); // kernels compute in f32, and round that
  bool losesInfo;
  number.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return number;
}

} // namespace

double rounded(double value, Type element) {
  if (auto type = dyn_cast<FloatType>(element))
    return inType(value, type).convertToDouble();
  return value;
}

double ulpOf(double value, Type element) {
  auto [digits, lowest] = element.isF32()    ? std::pair(24, -126)
                          : element.isBF16() ? std::pair(8, -126)
                                             : std::pair(11, -14);
  int exponent = value == 0 || !std::isfinite(value) ? lowest : std::max(std::ilogb(value), lowest);
  return std::ldexp(1.0, exponent - digits + 1);
}

int64_t bytesOf(RankedTensorType type) {
  Type element = type.getElementType();
  return type.getNumElements() * (element.isInteger(1) ? 1 : element.getIntOrFloatBitWidth() / 8);
}

std::string HostTensor::toMemory() const {
  std::string bytes(bytesOf(type), '\0');
  size_t size = bytes.size() / values.size();
  for (size_t i = 0; i < values.size(); ++i) {
    uint64_t bits = static_cast<uint64_t>(static_cast<int64_t>(isa<FloatType>(element()) ? 0 : values[i]));
    if (auto ofFloats = dyn_cast<FloatType>(element()))
      bits = inType(values[i], ofFloats).bitcastToAPInt().getZExtValue();
    std::memcpy(&bytes[i * size], &bits, size);
  }
  return bytes;
}

void HostTensor::fromMemory(const char *bytes) {
  size_t size = bytesOf(type) / values.size();
  for (size_t i = 0; i < values.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes + i * size, size);
    if (auto ofFloats = dyn_cast<FloatType>(element()))
      values[i] = llvm::APFloat(ofFloats.getFloatSemantics(), llvm::APInt(size * 8, bits)).convertToDouble();
    else
      values[i] = size == 4 ? static_cast<int32_t>(bits) : static_cast<double>(bits);
  }
}

} // namespace ft::compiler::testing
