// A CUDA graph as a recording.
#pragma once

#include "runtime/backends/cuda/device/device_state.h"
#include "runtime/device/device.h"

namespace ft::cuda {

class CudaRecording final : public Recording {
 public:
  // Takes the graph; starts it on `origin`, which must live as long.
  CudaRecording(DeviceState& state, GraphHandle graph, StreamHandle origin)
      : state_(state), graph_(graph), origin_(origin) {}

  ~CudaRecording() override {
    if (state_.MakeCurrent()) state_.driver.DestroyGraph(graph_).IgnoreError();
  }

  void Start() override {
    if (state_.failure.failed() || !state_.MakeCurrent()) return;
    state_.Check(state_.driver.LaunchGraph(graph_, origin_));
  }

 private:
  DeviceState& state_;
  const GraphHandle graph_;
  const StreamHandle origin_;
};

}  // namespace ft::cuda
