#include "runtime/executor/trace_session.h"

#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"

namespace ft {

namespace {

constexpr size_t kCounters = 3;  // of a step

}  // namespace

class TraceSession::StreamTrace final : public StreamObserver {
 public:
  StreamTrace(const TraceSession& session, TraceRecorder& recorder, int stream)
      : session_(session), recorder_(recorder), stream_(stream) {}

  void OnCommand(const CommandInfo& info, int64_t begin_ns, int64_t end_ns) override {
    const int64_t bytes = info.bytes == 0 ? -1 : static_cast<int64_t>(info.bytes);
    recorder_.Record(stream_, info.title, info.category, begin_ns, end_ns, bytes, info.instruction,
                     session_.DetailsOf(info));
  }

 private:
  const TraceSession& session_;
  TraceRecorder& recorder_;
  const int stream_;
};

TraceSession::TraceSession(const proto::Plan& plan, Executor& executor, size_t commands_per_step, int rank,
                           Steps steps)
    : plan_(plan), executor_(executor), steps_(steps), recorder_(rank) {
  for (const proto::Program& program : plan.programs()) {
    std::vector<std::string>& texts = shapes_.emplace_back();
    for (const proto::Instruction& instruction : program.instructions())
      texts.push_back(ShapesText(instruction, executor.operands()));
  }
  recorder_.ReserveValues(kCounters * static_cast<size_t>(steps.count));
  const size_t capacity = commands_per_step * static_cast<size_t>(steps.count);
  for (int s = 0; s < kNumStreams; ++s) {
    if (!executor.UsesStream(s)) continue;
    const int track = recorder_.AddStream(
        absl::AsciiStrToLower(proto::Stream_Name(static_cast<proto::Stream>(s))), capacity);
    streams_[s] = std::make_unique<StreamTrace>(*this, recorder_, track);
  }
}

TraceSession::~TraceSession() { EndStep(); }

TraceDetails TraceSession::DetailsOf(const CommandInfo& info) const {
  if (info.instruction < 0) return {};
  const proto::Instruction& instruction =
      plan_.programs(program_).instructions(static_cast<int>(info.instruction));
  // A wait stands before an instruction and touches none of its operands.
  const bool waits = info.category == "wait";
  return {.layer = instruction.layer(),
          .shapes = waits ? std::string_view()
                          : shapes_[static_cast<size_t>(program_)][static_cast<size_t>(info.instruction)],
          .program = plan_.programs(program_).name(),
          .step = step_,
          .micro_step = micro_step_};
}

void TraceSession::BeginStep(int64_t step) {
  if (!Has(step)) return;
  std::array<StreamObserver*, kNumStreams> observers = {};
  for (int s = 0; s < kNumStreams; ++s) observers[s] = streams_[s].get();
  executor_.Observe(observers);
  recording_ = true;
  step_ = step;
  micro_step_ = -1;
  begin_ns_ = TraceRecorder::NowNs();
}

void TraceSession::EndStep() {
  if (recording_) executor_.Observe({});
  recording_ = false;
}

void TraceSession::Count(const StepMetrics& metrics) {
  if (!Has(metrics.step)) return;
  const auto count = [this](std::string_view name, const std::optional<double>& value) {
    if (value.has_value()) recorder_.Count(name, begin_ns_, *value);
  };
  count("exposed_ms", metrics.exposed_ms);
  count("mfu", metrics.mfu);
  count("utilization", metrics.utilization);
}

}  // namespace ft
