#include "runtime/executor/instruction_times.h"

namespace ft {

class InstructionTimes::StreamTimes final : public StreamObserver {
 public:
  explicit StreamTimes(InstructionTimes& times) : times_(times) {}

  void OnCommand(const CommandInfo& info, int64_t begin_ns, int64_t end_ns) override {
    if (info.instruction < 0 || info.category == "wait") return;
    times_.ns_[static_cast<size_t>(times_.program_)][static_cast<size_t>(info.instruction)] +=
        end_ns - begin_ns;
  }

 private:
  InstructionTimes& times_;
};

InstructionTimes::InstructionTimes(const proto::Plan& plan, Executor& executor, int64_t step)
    : executor_(executor), step_(step) {
  for (const proto::Program& program : plan.programs())
    ns_.emplace_back(static_cast<size_t>(program.instructions_size()));
  for (int s = 0; s < kNumStreams; ++s)
    if (executor.UsesStream(s)) streams_[s] = std::make_unique<StreamTimes>(*this);
}

InstructionTimes::~InstructionTimes() { EndStep(); }

void InstructionTimes::BeginStep(int64_t step) {
  if (step != step_) return;
  std::array<StreamObserver*, kNumStreams> observers = {};
  for (int s = 0; s < kNumStreams; ++s) observers[s] = streams_[s].get();
  executor_.Observe(observers);
  observing_ = true;
}

void InstructionTimes::EndStep() {
  if (!observing_) return;
  executor_.Observe({});
  observing_ = false;
  measured_ = true;
}

double InstructionTimes::Seconds(int program, int instruction) const {
  return static_cast<double>(ns_[static_cast<size_t>(program)][static_cast<size_t>(instruction)]) * 1e-9;
}

}  // namespace ft
