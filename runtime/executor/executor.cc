#include "runtime/executor/executor.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/monotonic_clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/plan_clusters.h"

namespace ft {
namespace {

void* DataOf(const std::unique_ptr<Memory>& memory) { return memory == nullptr ? nullptr : memory->data(); }

Tensor FindPort(const google::protobuf::RepeatedPtrField<proto::Port>& ports, std::string_view name,
                const OperandResolver& resolver) {
  for (const proto::Port& port : ports) {
    if (port.name() == name) return resolver.Resolve(port.operand());
  }
  return {};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(const proto::Plan& plan, const BoundPlan& bound,
                                                           Device& device,
                                                           const CommunicatorTable& communicators, int rank,
                                                           const ExecutorOptions& options) {
  FT_ASSIGN_OR_RETURN(std::unique_ptr<Memory> arena, communicators.HasWindows()
                                                         ? device.AllocateMappable(bound.arena_bytes())
                                                         : device.Allocate(bound.arena_bytes()));
  std::unique_ptr<Memory> host_arena;
  if (bound.host_arena_bytes() > 0) {
    FT_ASSIGN_OR_RETURN(host_arena, device.AllocateHost(bound.host_arena_bytes()));
  }
  std::unique_ptr<Executor> executor(new Executor(plan, bound, device, communicators, rank, options,
                                                  std::move(arena), std::move(host_arena)));
  FT_RETURN_IF_ERROR(executor->Load());
  return executor;
}

Executor::Executor(const proto::Plan& plan, const BoundPlan& bound, Device& device,
                   const CommunicatorTable& communicators, int rank, const ExecutorOptions& options,
                   std::unique_ptr<Memory> arena, std::unique_ptr<Memory> host_arena)
    : plan_(plan),
      bound_(bound),
      device_(device),
      communicators_(communicators),
      record_(options.record && device.records()),
      generated_kernels_(options.generated_kernels),
      on_failure_(options.on_failure),
      arena_(std::move(arena)),
      host_arena_(std::move(host_arena)),
      resolver_(plan, bound, rank, DataOf(arena_), DataOf(host_arena_)) {}

Executor::~Executor() {
  // Nothing of theirs on a device that failed ever ends in an orderly way.
  if (const absl::Status failure = device_.status(); !failure.ok()) communicators_.AbortAll(failure);
  for (Program& program : programs_) program.recording = nullptr;  // they use registered memory
  communicators_.Detach();
}

absl::Status Executor::Load() {
  FT_ASSIGN_OR_RETURN(ports_, HostPorts::Create(plan_, resolver_, device_));
  FT_ASSIGN_OR_RETURN(auto made, ClustersOf(plan_));
  for (const std::shared_ptr<Cluster>& cluster : made)
    if (!generated_kernels_) cluster->codes.clear();
  const std::vector<std::shared_ptr<const Cluster>> clusters(made.begin(), made.end());
  const ScheduleContext context{.plan = plan_,
                                .bound = bound_,
                                .resolver = resolver_,
                                .device = device_,
                                .communicators = communicators_,
                                .ports = ports_,
                                .clusters = clusters,
                                .on_failure = [this](const absl::Status& status) { Fail(status); },
                                .counts = counts_};
  programs_.reserve(plan_.programs_size());
  for (int p = 0; p < plan_.programs_size(); ++p) {
    FT_ASSIGN_OR_RETURN(ProgramSchedule schedule, ProgramSchedule::Create(context, p));
    programs_.push_back({.schedule = std::move(schedule)});
  }
  return MakeStreams();
}

absl::Status Executor::MakeStreams() {
  size_t max_batches = 1;
  for (const Program& program : programs_)
    max_batches = std::max(max_batches, program.schedule.batches().size());
  for (int s = 0; s < kNumStreams; ++s) {
    const bool used = std::any_of(programs_.begin(), programs_.end(),
                                  [s](const Program& program) { return program.schedule.Uses(s); });
    if (!used) continue;
    const std::string name = absl::AsciiStrToLower(proto::Stream_Name(static_cast<proto::Stream>(s)));
    FT_ASSIGN_OR_RETURN(streams_[s], device_.CreateStream(name, max_batches + 1));  // inputs are one more
    const auto stream = static_cast<proto::Stream>(s);
    communicators_.AttachStream(stream, streams_[s]->native());
    communicators_.Supervise(
        stream, [this, s] { return streams_[s]->in_flight(); },
        [this](const absl::Status& status) { Fail(status); });
  }
  return absl::OkStatus();
}

absl::Status Executor::RegisterArena() {
  if (!registered_.has_value()) registered_ = communicators_.RegisterBuffer(arena_->data(), arena_->bytes());
  return *registered_;
}

absl::StatusOr<int> Executor::FindProgram(std::string_view name) const {
  for (int p = 0; p < plan_.programs_size(); ++p) {
    if (plan_.programs(p).name() == name) return p;
  }
  return absl::FailedPreconditionError(absl::StrCat("the plan has no program '", std::string(name), "'"));
}

void Executor::BeginRun(int program) {
  runs_.fetch_add(1, std::memory_order_relaxed);
  running_since_ns_.store(MonotonicNs(), std::memory_order_relaxed);
  running_.store(program, std::memory_order_release);
}

absl::Status Executor::Run(int program) {
  FT_RETURN_IF_ERROR(Start(program));
  return Wait();
}

absl::Status Executor::Start(int program) {
  FT_RETURN_IF_ERROR(RegisterArena());
  BeginRun(program);
  FT_ASSIGN_OR_RETURN(Recording* const recording, RecordingOf(program));
  const ProgramSchedule& schedule = programs_[program].schedule;
  TakeInputs(schedule);
  if (recording != nullptr) {
    recording->Start();
  } else {
    Enqueue(schedule);
  }
  ++programs_[program].runs;
  schedule.AwaitInputs();
  return absl::OkStatus();
}

absl::Status Executor::Wait() {
  for (const std::unique_ptr<Stream>& stream : streams_) {
    if (stream != nullptr) stream->Synchronize();
  }
  running_.store(-1, std::memory_order_release);
  return device_.status();
}

absl::Status Executor::RunWatched(int program, InstructionWatcher& watcher) {
  FT_RETURN_IF_ERROR(RegisterArena());
  BeginRun(program);
  const absl::Status status = RunEach(programs_[program].schedule, watcher);
  running_.store(-1, std::memory_order_release);
  return status;
}

absl::Status Executor::RunEach(const ProgramSchedule& schedule, InstructionWatcher& watcher) {
  TakeInputs(schedule);
  schedule.AwaitInputs();
  schedule.ResetEvents();
  for (const ProgramSchedule::Batch& batch : schedule.batches()) {
    Stream& stream = *streams_[batch.stream];
    for (size_t i = 0; i < batch.commands.size(); ++i) {
      const Command& command = batch.commands[i];
      const bool acts = command.kind == Command::Kind::kKernel || command.kind == Command::Kind::kTask ||
                        command.kind == Command::Kind::kCopy;
      const bool watched = acts && command.info->instruction >= 0;
      const int program = watched ? command.info->program : -1;
      const int instruction = watched ? static_cast<int>(command.info->instruction) : -1;
      if (watched) FT_RETURN_IF_ERROR(watcher.Before(program, instruction));
      stream.Enqueue(batch.commands.subspan(i, 1));
      stream.Synchronize();
      FT_RETURN_IF_ERROR(device_.status());
      if (watched) FT_RETURN_IF_ERROR(watcher.After(program, instruction));
    }
  }
  return absl::OkStatus();
}

void Executor::TakeInputs(const ProgramSchedule& schedule) {
  schedule.CopyInputs();
  if (schedule.inputs().empty()) return;
  schedule.ResetInputs();
  streams_[proto::COMPUTE]->Enqueue(schedule.inputs());
}

void Executor::Enqueue(const ProgramSchedule& schedule) {
  schedule.ResetEvents();
  for (const ProgramSchedule::Batch& batch : schedule.batches())
    streams_[batch.stream]->Enqueue(batch.commands);
}

absl::StatusOr<Recording*> Executor::RecordingOf(int program) {
  Program& p = programs_[program];
  // Observers want to be told of each command.
  if (!record_ || observed_ || p.runs == 0) return nullptr;
  if (p.recording == nullptr) {
    FT_ASSIGN_OR_RETURN(p.recording, device_.Record(*streams_[proto::COMPUTE], [&] { Enqueue(p.schedule); }));
  }
  return p.recording.get();
}

Tensor Executor::Input(int program, std::string_view name) const {
  return ports_.Input(name, FindPort(plan_.programs(program).inputs(), name, resolver_));
}

Tensor Executor::Output(int program, std::string_view name) const {
  return ports_.Output(FindPort(plan_.programs(program).outputs(), name, resolver_));
}

void Executor::Observe(const std::array<StreamObserver*, kNumStreams>& observers) {
  observed_ = std::any_of(observers.begin(), observers.end(),
                          [](const StreamObserver* observer) { return observer != nullptr; });
  for (int s = 0; s < kNumStreams; ++s) {
    if (streams_[s] != nullptr) streams_[s]->Observe(observers[s]);
  }
}

void Executor::Fail(const absl::Status& reason) {
  Stop(reason);
  if (on_failure_) on_failure_(reason);
}

void Executor::Cancel(const absl::Status& reason) {
  std::string text(reason.message());
  for (const std::unique_ptr<Stream>& stream : streams_) {
    if (stream == nullptr) continue;
    const InFlight at = stream->in_flight();
    if (at.running && at.info != nullptr)
      absl::StrAppend(&text, ", in '", at.info->title, "' #", at.sequence);
  }
  Stop(absl::Status(reason.code(), text));
}

ExecutorPosition Executor::PositionNow() const {
  ExecutorPosition position;
  position.program = running_.load(std::memory_order_acquire);
  position.program_ns = running_since_ns_.load(std::memory_order_relaxed);
  position.runs = runs_.load(std::memory_order_relaxed);
  AddStreams(streams_, counts_, position);
  position.taken_ns = MonotonicNs();
  return position;
}

ExecutorPosition Executor::Position() const {
  const std::lock_guard lock(stopped_mutex_);
  return stopped_at_.has_value() ? *stopped_at_ : PositionNow();
}

// Streams that are stopped run through the rest of their commands, without doing them: where they stood is
// looked up before.
void Executor::Stop(const absl::Status& reason) {
  {
    const std::lock_guard lock(stopped_mutex_);
    if (!stopped_at_.has_value()) {
      stopped_at_ = PositionNow();
      stopped_at_->failure = reason;
    }
  }
  device_.Cancel(reason);
  communicators_.AbortAll(reason);
}

}  // namespace ft
