#include "runtime/backends/cuda/device/cuda_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/backends/cuda/device/kernel_marks.h"
#include "runtime/backends/cuda/device/word_marks.h"
#include "runtime/backends/cuda/kernel_base.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {
namespace {

bool IsCommunication(const std::string& name) {
  return name == "gather" || name == "reduce" || name == "replica";
}

absl::Status Prefixed(const std::string& prefix, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(prefix, ": ", status.message()));
}

std::string Place(const CommandInfo& info) {
  return absl::StrCat(info.title, " (instruction ", info.instruction, ")");
}

absl::StatusOr<std::unique_ptr<StreamMarks>> MarksOf(DeviceState& state) {
  if (state.word_marks) return WordMarks::Create(state);
  return KernelMarks::Create(state.driver);
}

// A range of the profiler for as long as it lives.
class NamedRange {
 public:
  NamedRange(ProfilerRanges* ranges, const CommandInfo* info) : ranges_(info == nullptr ? nullptr : ranges) {
    if (ranges_ != nullptr) ranges_->Push(info->title.c_str());
  }
  ~NamedRange() {
    if (ranges_ != nullptr) ranges_->Pop();
  }
  NamedRange(const NamedRange&) = delete;
  NamedRange& operator=(const NamedRange&) = delete;

 private:
  ProfilerRanges* const ranges_;
};

}  // namespace

CudaEvent::~CudaEvent() {
  if (handle_ != nullptr && state_.MakeCurrent()) state_.driver.DestroyEvent(handle_).IgnoreError();
}

void CudaEvent::Await() {
  if (recorded_on_ == nullptr || state_.failure.failed() || !state_.MakeCurrent()) return;
  state_.Check(state_.driver.Await(handle_));
}

absl::StatusOr<std::unique_ptr<CudaStream>> CudaStream::Create(DeviceState& state, std::string name) {
  if (!state.MakeCurrent()) return state.failure.status();
  FT_ASSIGN_OR_RETURN(std::unique_ptr<StreamMarks> marks, MarksOf(state));
  FT_ASSIGN_OR_RETURN(const StreamHandle handle, state.driver.CreateStream(IsCommunication(name)));
  return std::unique_ptr<CudaStream>(new CudaStream(state, std::move(name), handle, std::move(marks)));
}

CudaStream::CudaStream(DeviceState& state, std::string name, StreamHandle handle,
                       std::unique_ptr<StreamMarks> marks)
    : state_(state),
      name_(std::move(name)),
      handle_(handle),
      marks_(std::move(marks)),
      measures_waits_(name_ == "compute"),
      times_(state.driver) {
  state_.marks.push_back(marks_.get());
}

CudaStream::~CudaStream() {
  std::erase(state_.marks, marks_.get());
  if (!state_.MakeCurrent()) return;
  // What still runs uses memory that goes next. After a failure nothing may ever end: CUDA keeps the stream
  // until it does.
  if (!state_.failure.failed()) state_.driver.Synchronize(handle_).IgnoreError();
  if (observer_ != nullptr) --state_.num_observed;
  state_.driver.DestroyStream(handle_).IgnoreError();
}

void CudaStream::Enqueue(absl::Span<const Command> commands) {
  if (!state_.MakeCurrent()) return;
  if (observer_ != nullptr && state_.recording) {
    state_.Check(absl::InternalError(absl::StrCat("stream ", name_, " is observed and cannot be recorded")));
  }
  while (!commands.empty() && !state_.failure.failed()) {
    const absl::StatusOr<size_t> done = RunNext(commands);
    if (!state_.Check(done.status())) return;
    commands.remove_prefix(*done);
  }
}

void CudaStream::Synchronize() {
  if (!state_.MakeCurrent()) return;
  const absl::Status status = state_.driver.Synchronize(handle_);
  if (!status.ok()) state_.Check(Prefixed(absl::StrCat("stream ", name_), status));
  if (!state_.failure.failed()) marks_->Collect();
  if (observer_ == nullptr) return;
  if (state_.failure.failed()) return times_.Clear();
  state_.Check(times_.Report(state_.clock, *observer_));
}

void CudaStream::Observe(StreamObserver* observer) {
  if (!state_.MakeCurrent()) return;
  if (observer != nullptr && observer_ == nullptr) {
    // All streams that are observed at one time have one clock.
    if (state_.num_observed++ == 0 && !state_.failure.failed()) state_.Check(state_.clock.Set(handle_));
  } else if (observer == nullptr && observer_ != nullptr) {
    --state_.num_observed;
  }
  times_.Clear();
  observer_ = observer;
}

absl::StatusOr<size_t> CudaStream::RunNext(absl::Span<const Command> commands) {
  const Command& command = commands.front();
  if (command.kind == Command::Kind::kWait) return RunWaits(commands);
  FT_RETURN_IF_ERROR(Timed(command));
  return 1;
}

absl::StatusOr<size_t> CudaStream::RunWaits(absl::Span<const Command> commands) {
  const auto end = std::find_if(commands.begin(), commands.end(),
                                [](const Command& command) { return command.kind != Command::Kind::kWait; });
  const absl::Span<const Command> waits = commands.first(end - commands.begin());
  const bool measured =
      measures_waits_ &&
      std::any_of(waits.begin(), waits.end(), [this](const Command& wait) { return IsForeign(wait); });
  if (measured) FT_RETURN_IF_ERROR(marks_->WaitBegin(handle_));
  for (const Command& wait : waits) FT_RETURN_IF_ERROR(Timed(wait));
  if (measured) FT_RETURN_IF_ERROR(marks_->WaitEnd(handle_));
  return waits.size();
}

absl::Status CudaStream::Timed(const Command& command) {
  if (observer_ == nullptr || command.info == nullptr) return Run(command);
  FT_RETURN_IF_ERROR(times_.Begin(*command.info, handle_));
  FT_RETURN_IF_ERROR(Run(command));
  return times_.End(handle_);
}

absl::Status CudaStream::Run(const Command& command) {
  const NamedRange range(state_.ranges, command.info);
  switch (command.kind) {
    case Command::Kind::kKernel:
      return RunKernel(command);
    case Command::Kind::kTask:
      return RunTask(command);
    case Command::Kind::kCopy:
      return RunCopy(command);
    case Command::Kind::kRecord: {
      CudaEvent& event = *static_cast<CudaEvent*>(command.event);
      event.recorded_on_ = this;
      return state_.driver.Record(event.handle_, handle_);
    }
    case Command::Kind::kWait:
      return RunWait(command);
  }
  return absl::OkStatus();
}

absl::Status CudaStream::RunKernel(const Command& command) {
  const int error = static_cast<CudaKernel*>(command.kernel)->Launch(handle_);
  if (error == 0) return absl::OkStatus();
  return state_.driver.LaunchStatus(error, Place(*command.info).c_str());
}

absl::Status CudaStream::RunTask(const Command& command) {
  FT_RETURN_IF_ERROR(marks_->TaskBegin(*command.info, handle_));
  FT_RETURN_IF_ERROR(command.task->Run());
  return marks_->TaskEnd(handle_);
}

absl::Status CudaStream::RunCopy(const Command& command) {
  for (const CopyRegion& region : *command.copy) {
    if (region.bytes == 0) continue;  // no node of a graph copies nothing
    const absl::Status status = state_.driver.CopyAsync(region.dst, region.src, region.bytes, handle_);
    if (!status.ok()) return Prefixed(Place(*command.info), status);
  }
  return absl::OkStatus();
}

absl::Status CudaStream::RunWait(const Command& command) {
  const CudaEvent& event = *static_cast<CudaEvent*>(command.event);
  // CUDA would take it for an event that has happened.
  if (event.recorded_on_ == nullptr)
    return absl::InternalError(
        absl::StrCat(command.info->title, ": it is enqueued before what it waits for"));
  if (event.recorded_on_ == this) return absl::OkStatus();  // it comes later anyway
  return state_.driver.Wait(event.handle_, handle_);
}

bool CudaStream::IsForeign(const Command& wait) const {
  const CudaStream* recorded_on = static_cast<CudaEvent*>(wait.event)->recorded_on_;
  return recorded_on != nullptr && recorded_on != this;
}

}  // namespace ft::cuda
