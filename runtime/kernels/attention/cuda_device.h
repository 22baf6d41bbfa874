// Attention and its gradient by tiles in shared memory, for any head size up to 256: what is computed where
// no library's kernel is at hand. Of elements of 16 bits on tensor cores, of f32 in f32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"
#include "runtime/base/attention_span.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

// Head h uses kv head h / (heads / kv_heads). batch * heads * positions, and 128 * q_stride, are below 2^31.
struct AttentionShape {
  int batch, positions, heads, kv_heads, head_size;
  int q_stride, kv_stride;  // elements between positions of q and dq, and of k, v, dk and dv
  // A query sees the keys from `before` - 1 positions before it to `after` - 1 behind it; both are 1 to
  // `positions`.
  int before, after;
  float scale;    // s: of the products of q and k
  float softcap;  // c: s becomes c tanh(s / c); 0: it stays s
  // Times (key's position - query's) a slope is added to s, whose sequence (see ft.attention) is of so many
  // heads, a power of two; 0: nothing is.
  int alibi_heads;
  DType dtype;  // of all but lse and row_sums
};

// What is said of keys and probabilities; nullptr and 0: nothing.
struct AttentionOptions {
  const int32_t* lengths = nullptr;   // [batch]: keys that count, of any value
  const int32_t* ids = nullptr;       // [batch, positions]: of segments
  SegmentBounds* segments = nullptr;  // [batch, positions], scratch where there are ids
  // Of dropout, as DropoutRule (runtime/device/check.h) has them; rng is in device memory.
  const int64_t* rng = nullptr;
  uint32_t stream = 0, threshold = 0;
  float factor = 1.0f;

  bool any() const { return lengths != nullptr || ids != nullptr || rng != nullptr; }
};

struct AttentionArgs {
  const void* q;  // [batch, positions, heads * head_size]
  const void* k;  // [batch, positions, kv_heads * head_size]
  const void* v;
  void* out;   // [batch, positions, heads * head_size]
  float* lse;  // [batch, heads, positions]: log of the sum of exponentials of the scaled scores
  AttentionShape shape;
  AttentionOptions options;
};

struct AttentionGradArgs {
  const void *q, *k, *v, *out, *dout;
  const float* lse;
  float* row_sums;  // [batch, heads, positions], scratch: dout . out
  void *dq, *dk, *dv;
  AttentionShape shape;
  AttentionOptions options;
};

int Attention(const AttentionArgs& args, StreamHandle stream);
int AttentionGrad(const AttentionGradArgs& args, StreamHandle stream);

// Where the segments of options.ids begin and end.
int FindSegments(const AttentionOptions& options, int batch, int positions, StreamHandle stream);

// Shared memory that a block of either wants.
size_t AttentionSharedBytes(int head_size, DType dtype);
size_t AttentionGradSharedBytes(int head_size, DType dtype);

}  // namespace ft::cuda
