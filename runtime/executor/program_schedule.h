// A program as lists of commands for the streams.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/collective/plan_communicators.h"
#include "runtime/device/device.h"
#include "runtime/executor/collective_task.h"
#include "runtime/executor/host_ports.h"
#include "runtime/executor/operand_resolver.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

inline constexpr int kNumStreams = proto::Stream_ARRAYSIZE;

// What programs are made from; all of it must outlive them.
struct ScheduleContext {
  const proto::Plan& plan;
  const BoundPlan& bound;
  const OperandResolver& resolver;
  Device& device;
  const CommunicatorTable& communicators;
  const HostPorts& ports;
  absl::Span<const std::shared_ptr<const Cluster>> clusters;  // of the plan
  FailureHandler on_failure;
  CollectiveCounts& counts;  // of the collectives that are run
};

// Instructions of one stream that follow each other make one batch; batches are in the order of the program,
// so the record of an event is enqueued before anything that waits for it. Only instructions that another
// stream waits for get an event.
//
// Inputs are copied into the arena before anything else, and outside of what a device records: then the host
// may write the next ones. Where the host can reach the arena it does so itself, else stream `compute` does.
//
// On a device that records, or whose arena the host cannot reach, a program begins and ends on stream
// `compute`: all other streams begin by waiting for it, it ends by waiting for all of them, and copies
// outputs out last.
class ProgramSchedule {
 public:
  struct Batch {
    int stream;
    absl::Span<const Command> commands;
  };

  // Errors: those of kernels and collectives, with the instruction's place.
  static absl::StatusOr<ProgramSchedule> Create(const ScheduleContext& context, int program);

  // To be called, and then enqueued on `compute`, before all batches; there may be none of either.
  void CopyInputs() const {
    for (const CopyRegion& region : copied_by_host_) std::memcpy(region.dst, region.src, region.bytes);
  }
  absl::Span<const Command> inputs() const { return inputs_; }
  const std::vector<Batch>& batches() const { return batches_; }
  size_t num_commands() const { return commands_.size(); }

  bool Uses(int stream) const { return uses_[static_cast<size_t>(stream)]; }

  // Before inputs() are enqueued.
  void ResetInputs() const {
    if (inputs_copied_ != nullptr) inputs_copied_->Reset();
  }
  // Waits until they have been copied.
  void AwaitInputs() const {
    if (inputs_copied_ != nullptr) inputs_copied_->Await();
  }

  // Before the batches are enqueued.
  void ResetEvents() const {
    for (const std::unique_ptr<Event>& event : events_) event->Reset();
  }

 private:
  friend class ScheduleBuilder;

  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<std::unique_ptr<HostTask>> tasks_;
  std::vector<std::unique_ptr<std::vector<CopyRegion>>> copies_;
  std::vector<std::unique_ptr<Event>> events_;
  std::vector<CopyRegion> copied_by_host_;  // inputs
  std::unique_ptr<Event> inputs_copied_;    // null: `compute` copies none
  std::vector<std::unique_ptr<CommandInfo>> infos_;
  std::vector<Command> commands_;
  absl::Span<const Command> inputs_;  // the first of them
  std::vector<Batch> batches_;
  std::array<bool, kNumStreams> uses_ = {};
};

}  // namespace ft
