#include "runtime/backends/cuda/device/marks.h"
#include "runtime/backends/cuda/device_code/gpu.h"

namespace ft::cuda {
namespace {

// The host polls the report: every store must be made, once, in this order.
__device__ __forceinline__ void Store(uint64_t* word, uint64_t value) {
  *static_cast<volatile uint64_t*>(word) = value;
}

__global__ void __launch_bounds__(1) TaskBegin(MarkState* state, MarkReport* report, uint64_t task) {
  Store(&report->task, task);
  __threadfence_system();
  Store(&report->begun, ++state->begun);
}

__global__ void __launch_bounds__(1) TaskEnd(MarkState* state, MarkReport* report) {
  Store(&report->finished, ++state->finished);
}

__global__ void __launch_bounds__(1) WaitBegin(MarkState* state) { state->wait_begin_ns = GlobalTimerNs(); }

__global__ void __launch_bounds__(1) WaitEnd(MarkState* state, MarkReport* report) {
  state->waited_ns += GlobalTimerNs() - state->wait_begin_ns;
  Store(&report->waited_ns, state->waited_ns);
}

constexpr LaunchShape kOneThread;

}  // namespace

int MarkTaskBegin(MarkState* state, MarkReport* report, uint64_t task, StreamHandle stream) {
  return Launch(TaskBegin, kOneThread, stream, state, report, task);
}

int MarkTaskEnd(MarkState* state, MarkReport* report, StreamHandle stream) {
  return Launch(TaskEnd, kOneThread, stream, state, report);
}

int MarkWaitBegin(MarkState* state, StreamHandle stream) {
  return Launch(WaitBegin, kOneThread, stream, state);
}

int MarkWaitEnd(MarkState* state, MarkReport* report, StreamHandle stream) {
  return Launch(WaitEnd, kOneThread, stream, state, report);
}

}  // namespace ft::cuda
