#include "runtime/executor/executor_position.h"

namespace ft {
namespace {

void AddCounts(proto::Stream stream, const CollectiveCounts& counts, ExecutorPosition& position) {
  for (int axis = 0; axis < proto::Axis_ARRAYSIZE; ++axis) {
    const CollectiveCount& count = counts[stream][static_cast<size_t>(axis)];
    // In this order it has entered as many as it has left, or more.
    const uint64_t left = count.left.load(std::memory_order_acquire);
    const uint64_t entered = count.entered.load(std::memory_order_acquire);
    if (entered > 0)
      position.collectives.push_back(
          {.stream = stream, .axis = static_cast<proto::Axis>(axis), .entered = entered, .left = left});
  }
}

}  // namespace

void AddStreams(const std::array<std::unique_ptr<Stream>, proto::Stream_ARRAYSIZE>& streams,
                const CollectiveCounts& counts, ExecutorPosition& position) {
  for (int s = 0; s < proto::Stream_ARRAYSIZE; ++s) {
    const Stream* stream = streams[static_cast<size_t>(s)].get();
    if (stream == nullptr) continue;
    StreamPosition at = {.stream = static_cast<proto::Stream>(s)};
    if (const CommandHistory* history = stream->history(); history != nullptr) {
      at.is_followed = true;
      at.commands = history->Read();
      AddCounts(at.stream, counts, position);
    } else {
      // Tasks run when they are handed to the device, and not when it replays them: it counts by itself.
      at.task = stream->in_flight();
      if (at.task.sequence > 0)
        position.collectives.push_back({.stream = at.stream,
                                        .axis = proto::AXIS_NONE,
                                        .entered = at.task.sequence,
                                        .left = at.task.sequence - (at.task.running ? 1 : 0)});
    }
    position.streams.push_back(std::move(at));
  }
}

}  // namespace ft
