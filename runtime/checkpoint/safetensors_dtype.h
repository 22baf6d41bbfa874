// Element types as safetensors spells them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ft {

// Those of the format's specification that occupy whole bytes.
enum class SafetensorsDType : uint8_t {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kF64,
  kI64,
  kU64
};

size_t SizeOf(SafetensorsDType dtype);                                         // bytes of one element
std::string_view Name(SafetensorsDType dtype);                                 // "F32", "BF16", ...
std::optional<SafetensorsDType> ParseSafetensorsDType(std::string_view name);  // nothing when unknown

// Whether SafetensorsReader::ReadAsF32 takes it: F32, F16, BF16, F64.
bool IsReadableAsF32(SafetensorsDType dtype);

}  // namespace ft
