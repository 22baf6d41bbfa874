// Kernels that are marks of a stream (kernel_marks.h): they count in device memory, so a replayed graph goes
// on from where the one before ended.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"

namespace ft::cuda {

// What the marks of one stream remember; device memory, zero at the beginning. Only that stream uses it.
struct MarkState {
  uint64_t begun, finished;  // tasks
  uint64_t wait_begin_ns, waited_ns;
};

// What they tell; page-locked host memory, zero at the beginning. Written by one stream, read by any thread:
// `task` is written before `begun`.
struct MarkReport {
  uint64_t begun, finished;  // tasks
  uint64_t task;             // what the last one was called when it began
  uint64_t waited_ns;
};

// Each enqueues one thread and returns a cudaError_t, 0 for success.
int MarkTaskBegin(MarkState* state, MarkReport* report, uint64_t task, StreamHandle stream);
int MarkTaskEnd(MarkState* state, MarkReport* report, StreamHandle stream);
// Around what the stream waits for. Both take about a microsecond, which counts as waiting.
int MarkWaitBegin(MarkState* state, StreamHandle stream);
int MarkWaitEnd(MarkState* state, MarkReport* report, StreamHandle stream);

}  // namespace ft::cuda
