#include "runtime/base/streaming_copy.h"

#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace ft {

#ifdef __SSE2__

void StreamingCopy(void* to, const void* from, size_t bytes) {
  constexpr size_t kLine = 64, kPart = sizeof(__m128i), kFewBytes = 4096;
  if (bytes < kFewBytes) {
    std::memcpy(to, from, bytes);
    return;
  }
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  const size_t before = (kLine - reinterpret_cast<uintptr_t>(out) % kLine) % kLine;
  std::memcpy(out, in, before);
  out += before;
  in += before;
  bytes -= before;
  for (; bytes >= kLine; bytes -= kLine, in += kLine, out += kLine) {
    __m128i parts[kLine / kPart];
    for (size_t i = 0; i < kLine / kPart; ++i)
      parts[i] = _mm_loadu_si128(static_cast<const __m128i*>(static_cast<const void*>(in + i * kPart)));
    for (size_t i = 0; i < kLine / kPart; ++i)
      _mm_stream_si128(static_cast<__m128i*>(static_cast<void*>(out + i * kPart)), parts[i]);
  }
  std::memcpy(out, in, bytes);
  _mm_sfence();
}

#else

void StreamingCopy(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }

#endif

}  // namespace ft
