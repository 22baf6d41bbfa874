// A CUDA graph as a recording.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "runtime/backends/cuda/device/device_state.h"
#include "runtime/device/device.h"

namespace ft::cuda {

class CudaRecording final : public Recording {
 public:
  using Replays = std::vector<std::unique_ptr<StreamMarks::Replay>>;

  // Takes the graph; starts it on `origin`, which must live as long, as the streams must that it was recorded
  // from.
  CudaRecording(DeviceState& state, GraphHandle graph, StreamHandle origin, Replays replays)
      : state_(state), graph_(graph), origin_(origin), replays_(std::move(replays)) {}

  ~CudaRecording() override {
    if (state_.MakeCurrent()) state_.driver.DestroyGraph(graph_).IgnoreError();
  }

  void Start() override {
    if (state_.failure.failed() || !state_.MakeCurrent()) return;
    for (const auto& replay : replays_)
      if (!state_.Check(replay->Prepare(origin_))) return;
    state_.Check(state_.driver.LaunchGraph(graph_, origin_));
  }

 private:
  DeviceState& state_;
  const GraphHandle graph_;
  const StreamHandle origin_;
  const Replays replays_;
};

}  // namespace ft::cuda
