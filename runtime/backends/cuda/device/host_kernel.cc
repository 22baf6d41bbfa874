#include "runtime/backends/cuda/device/host_kernel.h"

#include <mutex>
#include <utility>

namespace ft::cuda {

// What CUDA calls.
struct HostKernel::Call {
  static void Run(void* data) {
    Call& call = *static_cast<Call*>(data);
    const std::lock_guard lock(call.mutex);
    if (call.task != nullptr) call.task->Run().IgnoreError();  // kernels do not fail
  }

  std::mutex mutex;
  std::unique_ptr<HostTask> task;  // null: its memory is gone
};

HostKernel::HostKernel(DeviceState& state, std::unique_ptr<HostTask> task)
    : state_(state), call_(std::make_unique<Call>()) {
  call_->task = std::move(task);
}

HostKernel::~HostKernel() {
  if (!state_.failure.failed()) return;
  const std::lock_guard lock(call_->mutex);
  call_->task = nullptr;
  // CUDA never says that it will not call any more.
  static_cast<void>(call_.release());
}

int HostKernel::Launch(StreamHandle stream) {
  state_.Check(state_.driver.LaunchHost(&Call::Run, call_.get(), stream));
  return 0;
}

}  // namespace ft::cuda
