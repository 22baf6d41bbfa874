// Where an executor stands: what each of its streams is in, and how many collectives it has been through.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/device/device.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Collectives of one stream over one axis. One thread counts, any may read.
struct CollectiveCount {
  std::atomic<uint64_t> entered = 0, left = 0;

  void Enter() noexcept { Increment(entered); }
  void Leave() noexcept { Increment(left); }

 private:
  static void Increment(std::atomic<uint64_t>& count) noexcept {
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
};

using CollectiveCounts =
    std::array<std::array<CollectiveCount, proto::Axis_ARRAYSIZE>, proto::Stream_ARRAYSIZE>;

struct StreamPosition {
  proto::Stream stream = proto::COMPUTE;
  // Whether `commands` holds what the stream did; else only `task` is known, the last collective that the
  // device has reached.
  bool is_followed = false;
  CommandHistory::Snapshot commands = {};
  InFlight task = {};
};

struct CollectivePosition {
  proto::Stream stream = proto::COMPUTE;
  proto::Axis axis = proto::AXIS_NONE;  // AXIS_NONE: all of the stream's
  uint64_t entered = 0, left = 0;
};

struct ExecutorPosition {
  absl::Status failure;    // why the executor was stopped; OK: it was not
  int64_t taken_ns = 0;    // of the steady clock, as all times here
  uint64_t runs = 0;       // programs begun since it was made, the same everywhere at the same place of a run
  int program = -1;        // that runs; -1: none
  int64_t program_ns = 0;  // when it began
  std::vector<StreamPosition> streams;
  std::vector<CollectivePosition> collectives;
};

// What of it is known from the streams alone; null ones are left out.
void AddStreams(const std::array<std::unique_ptr<Stream>, proto::Stream_ARRAYSIZE>& streams,
                const CollectiveCounts& counts, ExecutorPosition& position);

}  // namespace ft
