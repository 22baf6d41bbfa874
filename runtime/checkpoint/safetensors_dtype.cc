#include "runtime/checkpoint/safetensors_dtype.h"

namespace ft {
namespace {

struct Row {
  SafetensorsDType dtype;
  std::string_view name;
  size_t bytes;
};

// In the order of the enumeration.
constexpr Row kRows[] = {
    {SafetensorsDType::kBool, "BOOL", 1},      {SafetensorsDType::kU8, "U8", 1},
    {SafetensorsDType::kI8, "I8", 1},          {SafetensorsDType::kF8E5M2, "F8_E5M2", 1},
    {SafetensorsDType::kF8E4M3, "F8_E4M3", 1}, {SafetensorsDType::kI16, "I16", 2},
    {SafetensorsDType::kU16, "U16", 2},        {SafetensorsDType::kF16, "F16", 2},
    {SafetensorsDType::kBF16, "BF16", 2},      {SafetensorsDType::kI32, "I32", 4},
    {SafetensorsDType::kU32, "U32", 4},        {SafetensorsDType::kF32, "F32", 4},
    {SafetensorsDType::kF64, "F64", 8},        {SafetensorsDType::kI64, "I64", 8},
    {SafetensorsDType::kU64, "U64", 8},
};

constexpr bool RowsAreInOrder() {
  size_t index = 0;
  for (const Row& row : kRows) {
    if (static_cast<size_t>(row.dtype) != index++) return false;
  }
  return true;
}
static_assert(RowsAreInOrder());

const Row& RowOf(SafetensorsDType dtype) { return kRows[static_cast<size_t>(dtype)]; }

}  // namespace

size_t SizeOf(SafetensorsDType dtype) { return RowOf(dtype).bytes; }

std::string_view Name(SafetensorsDType dtype) { return RowOf(dtype).name; }

std::optional<SafetensorsDType> ParseSafetensorsDType(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

bool IsReadableAsF32(SafetensorsDType dtype) {
  switch (dtype) {
    case SafetensorsDType::kF32:
    case SafetensorsDType::kF16:
    case SafetensorsDType::kBF16:
    case SafetensorsDType::kF64:
      return true;
    default:
      return false;
  }
}

}  // namespace ft
