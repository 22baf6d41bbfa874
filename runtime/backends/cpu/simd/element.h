// Reading and writing single elements of any float type, in integer arithmetic without branches, so that
// loops over them become vector code on every instruction set. The bits, those of NaN included, are the ones
// of the conversion instructions (F16C).
//
// Included only by files compiled once per instruction set, inside their namespace (FT_ISA).
#pragma once

#include <bit>
#include <cstdint>

#include "runtime/backends/cpu/simd/element_type.h"
#include "runtime/backends/cpu/simd/vector_math.h"

namespace ft::cpu::FT_ISA {

FT_INLINE float Load(float x) { return x; }

FT_INLINE float Load(BFloat16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

FT_INLINE float Load(Float16 x) {
  const uint32_t magnitude = x.bits & 0x7FFFu;
  const uint32_t moved = magnitude << 13;
  // Exponents move by 127 - 15 = 112; infinity and NaN go to the top, NaN becomes a quiet one. A subnormal m
  // 2^-24 is the fraction of the f32 2^-14 (1 + m 2^-10), whose 2^-14 is taken off again.
  const uint32_t normal = moved + (magnitude >= 0x7C00u ? 224u << 23 : 112u << 23);
  const uint32_t quiet = magnitude > 0x7C00u ? 0x00400000u : 0u;
  const float subnormal = std::bit_cast<float>(moved + (113u << 23)) - 0x1p-14f;
  const uint32_t bits = magnitude < 0x0400u ? std::bit_cast<uint32_t>(subnormal) : normal | quiet;
  return std::bit_cast<float>(bits | static_cast<uint32_t>(x.bits & 0x8000u) << 16);
}

FT_INLINE void Store(float value, float& to) { to = value; }

// To the nearest, ties to even; NaN stays NaN.
FT_INLINE void Store(float value, BFloat16& to) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7FFFu + (bits >> 16 & 1u);
  const bool nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  to.bits = static_cast<uint16_t>((nan ? bits | 0x00400000u : rounded) >> 16);
}

// To the nearest, ties to even; from 65520 on infinity; NaN stays NaN.
FT_INLINE void Store(float value, Float16& to) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const uint32_t normal = (magnitude - (112u << 23) + 0x0FFFu + (magnitude >> 13 & 1u)) >> 13;
  // The last bit of 1/2 + x weighs 2^-24, the unit of subnormals: the addition rounds.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - (126u << 23);
  const uint32_t special = magnitude > 0x7F800000u ? 0x7E00u | (magnitude >> 13 & 0x03FFu) : 0x7C00u;
  const uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
  to.bits = static_cast<uint16_t>((magnitude >= 0x47800000u ? special : finite) | (bits >> 16 & 0x8000u));
}

}  // namespace ft::cpu::FT_ISA
