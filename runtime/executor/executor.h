// Runs the programs of a plan on a device.
//
// All decisions fall in Create: addresses, kernels, what each stream does and waits for. Start hands prepared
// lists to the streams, Wait waits for them; they neither allocate nor look anything up.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/collective/plan_communicators.h"
#include "runtime/device/device.h"
#include "runtime/executor/executor_position.h"
#include "runtime/executor/host_ports.h"
#include "runtime/executor/operand_resolver.h"
#include "runtime/executor/program_schedule.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

struct ExecutorOptions {
  // Whether a device that records does so: each program is recorded when it is run the second time (the first
  // run is how libraries set themselves up), and replayed from then on.
  bool record = true;
  // Told, from any thread, of a collective that failed, after the run was cancelled. Run returns the error,
  // but only when the device lets go of what it has.
  std::function<void(const absl::Status&)> on_failure = {};
  // Whether clusters run the code that the plan has for them; else they are walked.
  bool generated_kernels = true;
};

// Told of each instruction of a program that does something, while nothing else runs. Errors end the run.
class InstructionWatcher {
 public:
  virtual ~InstructionWatcher() = default;
  virtual absl::Status Before(int program, int instruction) = 0;
  virtual absl::Status After(int program, int instruction) = 0;
};

class Executor {
 public:
  // Allocates exactly bound.arena_bytes() (and bound.host_arena_bytes(), if any), once, beside them what
  // HostPorts takes, and creates every kernel. Where communicators have windows the arena takes whole pages.
  // `plan` must have passed VerifyPlan; plan, bound, device and what the table points at must outlive the
  // executor. Errors: ResourceExhausted without enough memory; FailedPrecondition for a kernel that the
  // device lacks, or that refuses its operands: names program, instruction, kernel, type and layer; Internal
  // when the table does not fit the plan and mesh.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(const proto::Plan& plan, const BoundPlan& bound,
                                                          Device& device,
                                                          const CommunicatorTable& communicators, int rank,
                                                          const ExecutorOptions& options = {});
  ~Executor();

  // Index of the program `name`. Errors: FailedPrecondition when the plan has none.
  absl::StatusOr<int> FindProgram(std::string_view name) const;

  // Returns when the program has taken its inputs: what the host writes from then on is for the next run.
  // Outputs are there after Wait, before which nothing else may be started. The first one tells communicators
  // of the arena, which may wait for all ranks. Errors: that of the first collective that failed, with its
  // place; nothing can be run after it.
  absl::Status Start(int program);
  absl::Status Wait();
  absl::Status Run(int program);  // both

  // Programs started so far.
  uint64_t runs() const { return runs_.load(std::memory_order_relaxed); }

  // As Run, but each instruction begins when the one before it, on whatever stream, has ended; nothing is
  // recorded, and no recording is used. All ranks have to call it alike. Errors: those of the watcher, too.
  absl::Status RunWatched(int program, InstructionWatcher& watcher);

  // Where the host writes an input of a program before it is run, or reads an output after; an absent tensor
  // when it has no such port. Ports of programs that are one buffer have one such place, but for an output
  // that is an input of the model.
  Tensor Input(int program, std::string_view name) const;
  Tensor Output(int program, std::string_view name) const;

  Device& device() const { return device_; }
  const OperandResolver& operands() const { return resolver_; }
  // Between host memory and the arenas, whatever the device; only between runs.
  absl::Status Write(void* arena_data, const void* host_data, uint64_t bytes) const {
    return device_.Write(arena_data, host_data, bytes);
  }
  absl::Status Read(void* host_data, const void* arena_data, uint64_t bytes) const {
    return device_.Read(host_data, arena_data, bytes);
  }
  const Mesh& mesh() const { return bound_.mesh; }
  uint64_t arena_bytes() const { return arena_->bytes(); }
  uint64_t host_arena_bytes() const { return host_arena_ == nullptr ? 0 : host_arena_->bytes(); }
  size_t num_commands(int program) const { return programs_[program].schedule.num_commands(); }

  // Nanoseconds that stream `compute` waited for the others in all runs so far: communication and copies that
  // nothing hid.
  int64_t exposed_ns() const {
    return streams_[proto::COMPUTE] == nullptr ? 0 : streams_[proto::COMPUTE]->waited_ns();
  }

  // Whether any program does something on a stream (proto::Stream).
  bool UsesStream(int stream) const { return streams_[static_cast<size_t>(stream)] != nullptr; }

  // Observers by stream (proto::Stream); null for none. Only between runs.
  void Observe(const std::array<StreamObserver*, kNumStreams>& observers);

  // Where it stands; once it was stopped (a collective failed, Cancel), where it stood before. Thread-safe;
  // stops nothing.
  ExecutorPosition Position() const;

  // Makes a run in progress end soon with `reason`, which comes from outside: the collectives that streams of
  // the device stand in are added to it. Wakes collectives, skips kernels. Thread-safe.
  void Cancel(const absl::Status& reason);

 private:
  Executor(const proto::Plan& plan, const BoundPlan& bound, Device& device,
           const CommunicatorTable& communicators, int rank, const ExecutorOptions& options,
           std::unique_ptr<Memory> arena, std::unique_ptr<Memory> host_arena);
  absl::Status Load();
  absl::Status MakeStreams();
  absl::Status RegisterArena();  // once
  void TakeInputs(const ProgramSchedule& schedule);
  void Enqueue(const ProgramSchedule& schedule);
  absl::Status RunEach(const ProgramSchedule& schedule, InstructionWatcher& watcher);
  void BeginRun(int program);
  void Fail(const absl::Status& reason);
  void Stop(const absl::Status& reason);
  ExecutorPosition PositionNow() const;
  // The program's recording, which is made if it is time to; null when it has to be enqueued.
  absl::StatusOr<Recording*> RecordingOf(int program);

  const proto::Plan& plan_;
  const BoundPlan& bound_;
  Device& device_;
  const CommunicatorTable communicators_;
  const bool record_;
  const bool generated_kernels_;
  const std::function<void(const absl::Status&)> on_failure_;
  bool observed_ = false;
  std::optional<absl::Status> registered_;  // what came of RegisterArena
  std::unique_ptr<Memory> arena_;
  std::unique_ptr<Memory> host_arena_;
  OperandResolver resolver_;
  HostPorts ports_;
  struct Program {
    ProgramSchedule schedule;
    int64_t runs = 0;
    std::unique_ptr<Recording> recording = nullptr;
  };
  std::vector<Program> programs_;
  CollectiveCounts counts_;
  std::atomic<uint64_t> runs_ = 0;
  std::atomic<int> running_ = -1;  // a program; -1: none
  std::atomic<int64_t> running_since_ns_ = 0;
  mutable std::mutex stopped_mutex_;
  std::optional<ExecutorPosition> stopped_at_;  // the first time
  // Null for those that no program uses. They go first: their threads use all of the above.
  std::array<std::unique_ptr<Stream>, kNumStreams> streams_;
};

}  // namespace ft
