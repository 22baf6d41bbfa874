// What a stream can be told to do. Commands are made once, when a plan is loaded, and enqueued every step.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "runtime/device/kernel.h"

namespace ft {

// Something recorded on one stream that other streams can wait for. Belongs to the device that made it.
class Event {
 public:
  virtual ~Event() = default;

  // Forgets that it was recorded. No stream may be using it.
  virtual void Reset() = 0;
};

// Work of the host in the order of a stream, such as a collective. May fail.
class HostTask {
 public:
  virtual ~HostTask() = default;
  virtual absl::Status Run() = 0;
};

// What a command is about, for traces and for the null device's clock.
struct CommandInfo {
  std::string title;     // "matmul", "all_gather transformer.h.3"
  std::string category;  // phase: "forward", "backward", ...
  int64_t instruction = 0;
  uint64_t flops = 0;
  uint64_t bytes = 0;  // memory traffic of a kernel; bytes of the whole buffer of a collective
  // Collectives: ranks that take part (0: no collective), and how often the buffer travels: once for
  // all_gather and reduce_scatter, twice for all_reduce.
  int ranks = 0;
  int passes = 0;
};

struct Command {
  enum class Kind : uint8_t { kKernel, kTask, kRecord, kWait };

  Kind kind;
  union {
    Kernel* kernel;
    HostTask* task;
    Event* event;
  };
  const CommandInfo* info;  // never null for kernels and tasks

  static Command Launch(Kernel* kernel, const CommandInfo* info) {
    return {.kind = Kind::kKernel, .kernel = kernel, .info = info};
  }
  static Command Call(HostTask* task, const CommandInfo* info) {
    return {.kind = Kind::kTask, .task = task, .info = info};
  }
  static Command Record(Event* event) { return {.kind = Kind::kRecord, .event = event, .info = nullptr}; }
  static Command Wait(Event* event, const CommandInfo* info) {
    return {.kind = Kind::kWait, .event = event, .info = info};
  }
};

}  // namespace ft
