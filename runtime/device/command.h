// What a stream can be told to do. Commands are made once, when a plan is loaded, and enqueued every step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/device/kernel.h"

namespace ft {

// Something recorded on one stream that other streams can wait for. Belongs to the device that made it.
class Event {
 public:
  virtual ~Event() = default;

  // Forgets that it was recorded. No stream may be using it.
  virtual void Reset() = 0;

  // Blocks the host until it has happened. Enqueued before, and not in a Recording; returns at once where the
  // device failed before.
  virtual void Await() = 0;
};

// Work of the host in the order of a stream, such as a collective. May fail.
class HostTask {
 public:
  virtual ~HostTask() = default;
  virtual absl::Status Run() = 0;
};

// Bytes from one place to another. Source and destination do not overlap; each is device memory, or host
// memory that the device allocated.
struct CopyRegion {
  const void* src = nullptr;
  void* dst = nullptr;
  uint64_t bytes = 0;
};

// What a command is about, for traces and for the null device's clock.
struct CommandInfo {
  std::string title;        // "matmul", "all_gather transformer.h.3"
  std::string category;     // phase: "forward", "backward", ...
  int program = 0;          // of the plan
  int64_t instruction = 0;  // of the program; -1: none
  uint64_t flops = 0;
  uint64_t bytes =
      0;  // memory traffic of a kernel; bytes of the whole buffers of a collective; bytes of a copy
};

struct Command {
  enum class Kind : uint8_t { kKernel, kTask, kCopy, kRecord, kWait };

  Kind kind;
  union {
    Kernel* kernel;
    HostTask* task;
    const std::vector<CopyRegion>* copy;
    Event* event;
  };
  const CommandInfo* info;  // never null for kernels, tasks and copies

  static Command Launch(Kernel* kernel, const CommandInfo* info) {
    return {.kind = Kind::kKernel, .kernel = kernel, .info = info};
  }
  static Command Call(HostTask* task, const CommandInfo* info) {
    return {.kind = Kind::kTask, .task = task, .info = info};
  }
  // All regions, as one transfer.
  static Command Copy(const std::vector<CopyRegion>* copy, const CommandInfo* info) {
    return {.kind = Kind::kCopy, .copy = copy, .info = info};
  }
  static Command Record(Event* event) { return {.kind = Kind::kRecord, .event = event, .info = nullptr}; }
  static Command Wait(Event* event, const CommandInfo* info) {
    return {.kind = Kind::kWait, .event = event, .info = info};
  }
};

}  // namespace ft
