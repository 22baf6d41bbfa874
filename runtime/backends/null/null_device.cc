#include "runtime/backends/null/null_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/plan/kernel_cost.h"

namespace ft {
namespace {

class NullMemory final : public Memory {
 public:
  NullMemory(void* data, uint64_t bytes) : data_(data), bytes_(bytes) {}
  ~NullMemory() override { munmap(data_, std::max<uint64_t>(1, bytes_)); }
  void* data() const override { return data_; }
  uint64_t bytes() const override { return bytes_; }

 private:
  void* data_;
  uint64_t bytes_;
};

class NullEvent final : public Event {
 public:
  void Reset() override { time = 0; }
  double time = 0;
};

class NullKernel final : public Kernel {};

}  // namespace

// Enqueueing advances the stream's clock at once. That is enough: events are recorded before they are waited
// for.
class NullStream final : public Stream {
 public:
  explicit NullStream(NullDevice& device) : device_(device), time_(device.now_) {}

  void Enqueue(absl::Span<const Command> commands) override {
    time_ = std::max(time_, device_.now_);
    for (const Command& command : commands) Run(command);
  }
  // Every stream is synchronized at the end of a program: what is enqueued next begins when the last of them
  // was done.
  void Synchronize() override { device_.now_ = std::max(device_.now_, time_); }
  void Observe(StreamObserver* observer) override { observer_ = observer; }
  int64_t waited_ns() const override { return std::llround(waited_ * 1e9); }

 private:
  void Run(const Command& command) {
    const double begin = time_;
    switch (command.kind) {
      case Command::Kind::kKernel:
      case Command::Kind::kTask:
      case Command::Kind::kCopy:
        time_ += device_.clock_(*command.info);
        break;
      case Command::Kind::kRecord:
        static_cast<NullEvent*>(command.event)->time = time_;
        return;
      case Command::Kind::kWait:
        time_ = std::max(time_, static_cast<NullEvent*>(command.event)->time);
        waited_ += time_ - begin;
        break;
    }
    if (observer_ != nullptr)
      observer_->OnCommand(*command.info, std::llround(begin * 1e9), std::llround(time_ * 1e9));
  }

  NullDevice& device_;
  double time_;
  double waited_ = 0;
  StreamObserver* observer_ = nullptr;
};

NullClock CostClock(const proto::Plan& plan, const BoundPlan& bound, const Target& target) {
  return [&plan, &bound, &target](const CommandInfo& info) {
    if (info.instruction < 0) return 0.0;
    const proto::Program& program = plan.programs(info.program);
    return InstructionSeconds(plan, bound.mesh, program.instructions(static_cast<int>(info.instruction)),
                              target);
  };
}

absl::StatusOr<std::unique_ptr<Memory>> NullDevice::Allocate(uint64_t bytes) {
  void* data = mmap(nullptr, std::max<uint64_t>(1, bytes), PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    return absl::ResourceExhaustedError(absl::StrCat("there is no address space for ", bytes, " bytes"));
  return std::make_unique<NullMemory>(data, bytes);
}

absl::StatusOr<std::unique_ptr<Stream>> NullDevice::CreateStream(std::string name, size_t max_enqueued) {
  return std::make_unique<NullStream>(*this);
}

std::unique_ptr<Event> NullDevice::CreateEvent() { return std::make_unique<NullEvent>(); }

absl::StatusOr<std::unique_ptr<Kernel>> NullDevice::CreateKernel(const std::string& name,
                                                                 const KernelOperands& operands,
                                                                 const KernelAttributes& attributes) {
  return std::make_unique<NullKernel>();
}

}  // namespace ft
