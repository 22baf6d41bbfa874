#include "runtime/backends/null/null_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/cost/simulate.h"

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
  void Reset() override { item = -1; }
  void Await() override {}
  // The last that stood on the stream when it was recorded, and among which; -1: none.
  int item = -1;
  int64_t play = 0;
};

class NullKernel final : public Kernel {};

int64_t Nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

}  // namespace

class NullStream final : public Stream {
 public:
  NullStream(NullDevice& device, int number) : device_(device), number_(number) {}
  ~NullStream() override { device_.streams_[static_cast<size_t>(number_)] = nullptr; }

  void Enqueue(absl::Span<const Command> commands) override {
    for (const Command& command : commands) Add(command);
  }
  // Every stream is synchronized at the end of a program: what is enqueued next begins when the last of them
  // was done.
  void Synchronize() override { device_.Play(); }
  void Observe(StreamObserver* observer) override { observer_ = observer; }
  int64_t waited_ns() const override { return Nanoseconds(waited_); }

  // What was enqueued here ran from `began` on.
  void Played(const Command& command, const ReplayedItem& times, double began) {
    const bool is_wait = command.kind == Command::Kind::kWait;
    if (is_wait) waited_ += times.end - times.reached;
    if (observer_ != nullptr)
      observer_->OnCommand(*command.info, Nanoseconds(began + (is_wait ? times.reached : times.begin)),
                           Nanoseconds(began + times.end));
  }
  // Nothing is left of what was enqueued.
  void Forget() { last_ = -1; }

 private:
  void Add(const Command& command) {
    if (command.kind == Command::Kind::kRecord) {
      auto* event = static_cast<NullEvent*>(command.event);
      event->item = last_;
      event->play = device_.plays_;
      return;
    }
    ReplayItem item{.stream = number_, .cost = {}, .launched_s = 0, .after = {}};
    if (command.kind == Command::Kind::kWait) {
      const auto* event = static_cast<const NullEvent*>(command.event);
      if (event->item >= 0 && event->play == device_.plays_) item.after.push_back(event->item);
    } else {
      const NullWork work = device_.clock_(*command.info);
      item.cost = work.cost;
      item.launched_s = work.launched_s;
    }
    last_ = static_cast<int>(device_.enqueued_.size());
    device_.enqueued_.push_back(std::move(item));
    device_.commands_.push_back(&command);
  }

  NullDevice& device_;
  const int number_;
  int last_ = -1;  // of what is enqueued here
  double waited_ = 0;
  StreamObserver* observer_ = nullptr;
};

void NullDevice::Play() {
  if (enqueued_.empty()) return;
  const std::vector<ReplayedItem> played = Replay(enqueued_, static_cast<int>(streams_.size()));
  double seconds = 0;
  for (size_t i = 0; i < played.size(); ++i) {
    seconds = std::max(seconds, played[i].end);
    if (NullStream* stream = streams_[static_cast<size_t>(enqueued_[i].stream)])
      stream->Played(*commands_[i], played[i], now_);
  }
  now_ += seconds;
  ++plays_;
  enqueued_.clear();
  commands_.clear();
  for (NullStream* stream : streams_)
    if (stream != nullptr) stream->Forget();
}

NullClock CostClock(const proto::Plan& plan, const BoundPlan& bound, const Target& target) {
  std::vector<std::vector<NullWork>> programs;
  for (const proto::Program& program : plan.programs()) {
    std::vector<NullWork>& work = programs.emplace_back();
    for (const ReplayItem& item : ReplayItems(plan, bound.mesh, program, target))
      work.push_back({item.cost, item.launched_s});
  }
  return [programs = std::move(programs)](const CommandInfo& info) {
    if (info.instruction < 0) return NullWork();
    return programs[static_cast<size_t>(info.program)][static_cast<size_t>(info.instruction)];
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
  auto stream = std::make_unique<NullStream>(*this, static_cast<int>(streams_.size()));
  streams_.push_back(stream.get());
  return stream;
}

std::unique_ptr<Event> NullDevice::CreateEvent() { return std::make_unique<NullEvent>(); }

absl::StatusOr<std::unique_ptr<Kernel>> NullDevice::CreateKernel(const std::string& name,
                                                                 const KernelOperands& operands,
                                                                 const KernelAttributes& attributes) {
  return std::make_unique<NullKernel>();
}

}  // namespace ft
