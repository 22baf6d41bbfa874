// What device_code/tensor_core.h takes for the hardware: lanes of a warp that load and multiply matrices
// together, and copies that are done at once.
#pragma once

#include "test/doubles/cuda/execution_model.h"

namespace ft::cuda::emulation {

// What a lane brings to a product: its part of a, b and the sums, and what its elements are.
struct ProductPart {
  float* sums;        // [4]
  const uint32_t* a;  // [4]
  uint32_t b[2];
  float (*to_float)(uint16_t bits);
};

// Waits for all lanes of the warp; then sums += a b.
void MeetForProduct(ProductPart& part, Place place);
// Waits for all lanes of the warp. What they said, by lane, until this lane meets others again.
const uint64_t* MeetLanes(uint64_t value, Place place);
// Ends the block where this is no multiple of 16.
void CheckAligned(const void* address, const char* what);

// Rows of 8 elements of 16 bits: element `column` of row `row` of matrix `matrix`, as lanes named the rows.
inline uint32_t MatrixElement(const uint64_t* rows, int matrix, int row, int column) {
  return reinterpret_cast<const uint16_t*>(rows[8 * matrix + row])[column];
}

}  // namespace ft::cuda::emulation

namespace ft::cuda {

#define FT_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void LoadMatrices(const void* row, uint32_t (&words)[4], FT_PLACE) {
  emulation::CheckAligned(row, "a row of a matrix");
  const uint64_t* rows = emulation::MeetLanes(reinterpret_cast<uint64_t>(row), {file, line});
  const int lane = static_cast<int>(emulation::OwnLane()), at = lane / 4, pair = lane % 4 * 2;
  for (int m = 0; m < 4; ++m)
    words[m] = emulation::MatrixElement(rows, m, at, pair) | emulation::MatrixElement(rows, m, at, pair + 1)
                                                                 << 16;
}

inline void LoadTransposed(const void* row, uint32_t (&words)[4], FT_PLACE) {
  emulation::CheckAligned(row, "a row of a matrix");
  const uint64_t* rows = emulation::MeetLanes(reinterpret_cast<uint64_t>(row), {file, line});
  const int lane = static_cast<int>(emulation::OwnLane()), at = lane / 4, pair = lane % 4 * 2;
  for (int m = 0; m < 4; ++m)
    words[m] = emulation::MatrixElement(rows, m, pair, at) | emulation::MatrixElement(rows, m, pair + 1, at)
                                                                 << 16;
}

template <typename T>
void MultiplyAdd(float (&sums)[4], const uint32_t (&a)[4], uint32_t b_upper, uint32_t b_lower, FT_PLACE) {
  emulation::ProductPart part = {sums, a, {b_upper, b_lower}, [](uint16_t bits) { return ToFloat(T{bits}); }};
  emulation::MeetForProduct(part, {file, line});
}

inline void BeginCopy(void* to, const void* from, bool there) {
  emulation::CheckAligned(to, "where a copy goes");
  emulation::CheckAligned(from, "where a copy comes from");
  struct Chunk {
    uint64_t words[2];
  };
  *static_cast<Chunk*>(to) = there ? *static_cast<const Chunk*>(from) : Chunk{};
}

inline void FinishCopies() {}

#undef FT_PLACE

}  // namespace ft::cuda
