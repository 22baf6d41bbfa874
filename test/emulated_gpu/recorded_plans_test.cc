// What plans put on the streams of a device that records: a device that runs nothing and writes down every
// command, and a check that knows nothing but that list and the plan. Order is followed through events alone,
// as a GPU would.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/backends/null/null_communicator.h"
#include "runtime/backends/null/null_device.h"
#include "runtime/collective/plan_communicators.h"
#include "runtime/executor/executor.h"
#include "runtime/plan/all_to_all.h"
#include "runtime/plan/bind.h"
#include "test/support/compile_plan.h"

namespace ft {
namespace {

struct Logged {
  std::string stream;
  Command command;
};

class LogEvent final : public Event {
 public:
  void Reset() override {}
  void Await() override {}
};

class LogStream final : public Stream {
 public:
  LogStream(std::string name, std::vector<Logged>& log) : name_(std::move(name)), log_(log) {}
  void Enqueue(absl::Span<const Command> commands) override {
    for (const Command& command : commands) {
      log_.push_back({name_, command});
      if (command.kind == Command::Kind::kTask)
        at_ = {.info = command.info, .sequence = at_.sequence + 1, .running = true};
    }
  }
  // It stands in the last of them for ever.
  InFlight in_flight() const override { return at_; }
  void Synchronize() override {}
  void Observe(StreamObserver* observer) override {}
  int64_t waited_ns() const override { return 0; }

 private:
  const std::string name_;
  std::vector<Logged>& log_;
  InFlight at_;
};

class LogRecording final : public Recording {
 public:
  explicit LogRecording(int& starts) : starts_(starts) {}
  void Start() override { ++starts_; }

 private:
  int& starts_;
};

// Takes every kernel; memory is address space.
class LogDevice final : public Device {
 public:
  std::string_view name() const override { return "log"; }
  bool host_accessible() const override { return false; }
  bool records() const override { return true; }
  absl::StatusOr<std::unique_ptr<Memory>> Allocate(uint64_t bytes) override { return null_.Allocate(bytes); }
  absl::StatusOr<std::unique_ptr<Memory>> AllocateHost(uint64_t bytes) override {
    return null_.Allocate(bytes);
  }
  absl::StatusOr<std::unique_ptr<Stream>> CreateStream(std::string name, size_t max_enqueued) override {
    return std::make_unique<LogStream>(std::move(name), log);
  }
  std::unique_ptr<Event> CreateEvent() override { return std::make_unique<LogEvent>(); }
  absl::StatusOr<std::unique_ptr<Kernel>> CreateKernel(const std::string& name,
                                                       const KernelOperands& operands,
                                                       const KernelAttributes& attributes) override {
    return std::make_unique<Kernel>();
  }
  absl::StatusOr<std::unique_ptr<Kernel>> CreateHostKernel(const std::string& name,
                                                           const KernelOperands& operands,
                                                           const KernelAttributes& attributes) override {
    return std::make_unique<Kernel>();
  }
  absl::Status Write(void*, const void*, uint64_t) override { return absl::OkStatus(); }
  absl::Status Read(void*, const void*, uint64_t) override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<Recording>> Record(Stream& origin,
                                                    absl::FunctionRef<void()> enqueue) override {
    ++recordings;
    enqueue();
    return std::make_unique<LogRecording>(starts);
  }
  absl::Status status() const override { return absl::OkStatus(); }
  void Cancel(const absl::Status& reason) override { cancelled = reason; }

  std::vector<Logged> log;
  absl::Status cancelled;
  int recordings = 0, starts = 0;

 private:
  NullDevice null_;
};

struct Case {
  const char* name;
  const char* model;
  Mesh mesh;
  void (*set)(compiler::CompileOptions&);
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

// How far of each stream has certainly been done: commands by stream.
using Clock = std::map<std::string, int>;

void Join(Clock& clock, const Clock& other) {
  for (const auto& [stream, count] : other) clock[stream] = std::max(clock[stream], count);
}

// Follows one program's commands. Times are those at which commands begin.
class Follower {
 public:
  // Returns what is wrong, or nothing.
  std::string Follow(const std::vector<Logged>& log) {
    for (const Logged& entry : log) {
      Clock& now = streams_[entry.stream];
      ++now[entry.stream];
      if (entry.command.kind == Command::Kind::kRecord) {
        events_[entry.command.event] = now;
      } else if (entry.command.kind == Command::Kind::kWait) {
        if (events_.count(entry.command.event) == 0)
          return "a wait for an event that was not recorded before";
        Join(now, events_[entry.command.event]);
      } else {
        begins_.push_back({&entry, now});
      }
    }
    return "";
  }

  struct Begin {
    const Logged* entry;
    Clock before;  // of its own stream including itself
  };
  const std::vector<Begin>& begins() const { return begins_; }
  const Clock& of(const std::string& stream) { return streams_[stream]; }
  std::vector<std::string> streams() const {
    std::vector<std::string> names;
    for (const auto& [name, clock] : streams_) names.push_back(name);
    return names;
  }

 private:
  std::map<std::string, Clock> streams_;
  std::map<const Event*, Clock> events_;
  std::vector<Begin> begins_;
};

class RecordedPlan : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    plan_ = CompilePlan(GetParam().model, "debug", GetParam().set);
    auto bound = BindPlan(plan_, GetParam().mesh, DeviceClass::kCuda);
    ASSERT_TRUE(bound.ok()) << bound.status();
    bound_ = *std::move(bound);
    std::vector<std::unique_ptr<Communicator>> made;
    for (const CommunicatorGroup& group : CommunicatorGroups(plan_, bound_.mesh, 0))
      made.push_back(std::make_unique<NullCommunicator>(0, static_cast<int>(group.ranks.size())));
    communicators_ = PlanCommunicators(plan_, bound_.mesh, 0, std::move(made));
    auto executor = Executor::Create(plan_, bound_, device_, communicators_.table(), 0);
    ASSERT_TRUE(executor.ok()) << executor.status();
    executor_ = *std::move(executor);
  }

  // What the recording of a program puts on the streams.
  std::vector<Logged> Recorded(int program) {
    EXPECT_EQ(executor_->Run(program), absl::OkStatus());
    device_.log.clear();
    const int before = device_.recordings;
    EXPECT_EQ(executor_->Run(program), absl::OkStatus());
    EXPECT_EQ(device_.recordings, before + 1);
    std::vector<Logged> log = std::move(device_.log);
    device_.log.clear();
    EXPECT_EQ(executor_->Run(program), absl::OkStatus());
    // A replay enqueues the inputs alone, and that they were taken; so did the run that recorded.
    const std::vector<Logged> inputs = std::move(device_.log);
    device_.log.clear();
    EXPECT_EQ(inputs.size(), plan_.programs(program).inputs_size() > 0 ? 2u : 0u);
    if (inputs.size() == 2) {
      EXPECT_EQ(inputs[0].stream + " " + inputs[0].command.info->title, "compute inputs");
      EXPECT_EQ(inputs[1].command.kind, Command::Kind::kRecord);
    }
    log.erase(log.end() - static_cast<std::ptrdiff_t>(inputs.size()), log.end());
    return log;
  }

  proto::Plan plan_;
  BoundPlan bound_;
  PlanCommunicators communicators_;
  LogDevice device_;
  std::unique_ptr<Executor> executor_;
};

TEST_P(RecordedPlan, BeginsAndEndsOnCompute) {
  for (int p = 0; p < plan_.programs_size(); ++p) {
    SCOPED_TRACE(plan_.programs(p).name());
    const std::vector<Logged> log = Recorded(p);
    Follower follower;
    ASSERT_EQ(follower.Follow(log), "");
    const bool has_outputs = plan_.programs(p).outputs_size() > 0;
    for (const Follower::Begin& begin : follower.begins()) {
      // Everything comes after the begin of compute, and so after the inputs, wherever it runs.
      const auto seen = begin.before.find("compute");
      ASSERT_TRUE(seen != begin.before.end() && seen->second >= 1) << begin.entry->command.info->title;
    }
    // At its end compute has seen the end of all others: a capture may end there.
    const Clock& end = follower.of("compute");
    for (const std::string& stream : follower.streams()) {
      if (stream == "compute") continue;
      const auto seen = end.find(stream);
      ASSERT_NE(seen, end.end()) << stream;
      EXPECT_EQ(seen->second, follower.of(stream).at(stream)) << stream << " is not joined";
    }
    if (has_outputs) {
      EXPECT_EQ(log.back().command.info->title, "outputs");
    }
  }
}

TEST_P(RecordedPlan, KeepsThePlansOrder) {
  for (int p = 0; p < plan_.programs_size(); ++p) {
    SCOPED_TRACE(plan_.programs(p).name());
    const std::vector<Logged> log = Recorded(p);
    Follower follower;
    ASSERT_EQ(follower.Follow(log), "");
    std::map<int64_t, const Follower::Begin*> by_instruction;
    std::map<std::string, int64_t> last;
    for (const Follower::Begin& begin : follower.begins()) {
      const int64_t instruction = begin.entry->command.info->instruction;
      if (instruction < 0) continue;
      by_instruction[instruction] = &begin;
      int64_t& previous = last.try_emplace(begin.entry->stream, -1).first->second;
      EXPECT_LT(previous, instruction) << begin.entry->stream;
      previous = instruction;
    }
    const auto& instructions = plan_.programs(p).instructions();
    int edges = 0;
    for (int i = 0; i < instructions.size(); ++i) {
      const bool runs = instructions[i].opcode() != proto::WAIT &&
                        instructions[i].opcode() != proto::RELEASE &&
                        RunsOn(plan_, bound_.mesh, /*rank=*/0, instructions[i]);
      ASSERT_EQ(by_instruction.count(i), runs ? 1u : 0u) << "instruction " << i;
      if (!runs) continue;
      // A WAIT before it on its stream orders it, too.
      for (int j = 0; j <= i; ++j) {
        if (instructions[j].stream() != instructions[i].stream()) continue;
        for (const uint32_t earlier : instructions[j].after()) {
          const auto done = by_instruction.find(earlier);
          if (done == by_instruction.end()) continue;  // a release or wait: nothing runs
          const std::string& stream = done->second->entry->stream;
          const auto seen = by_instruction[i]->before.find(stream);
          ASSERT_TRUE(seen != by_instruction[i]->before.end() &&
                      seen->second > done->second->before.at(stream))
              << "instruction " << i << " may begin before " << earlier << " has ended";
          ++edges;
        }
      }
    }
    if (plan_.programs(p).name() == "train_step" && bound_.mesh.world_size() > 1) {
      EXPECT_GT(edges, 0);
    }
  }
}

TEST_P(RecordedPlan, WhatIsCancelledSaysWhereStreamsStood) {
  const absl::Status reason = absl::UnavailableError("rank 3 was lost");
  executor_->Cancel(reason);
  EXPECT_EQ(device_.cancelled, reason);
  std::map<std::string, std::pair<std::string, int>> last;  // by stream: title, how many
  int step = 0;
  while (plan_.programs(step).name() != "train_step") ++step;
  for (const Logged& entry : Recorded(step)) {
    if (entry.command.kind != Command::Kind::kTask) continue;
    auto& [title, count] = last[entry.stream];
    title = entry.command.info->title;
    ++count;
  }
  EXPECT_FALSE(last.empty());
  executor_->Cancel(reason);
  EXPECT_EQ(device_.cancelled.code(), reason.code());
  for (const auto& [stream, at] : last) {
    // It ran once before it was recorded.
    const std::string where = ", in '" + at.first + "' #" + std::to_string(2 * at.second);
    EXPECT_NE(device_.cancelled.message().find(where), std::string::npos) << device_.cancelled;
  }
}

using Options = compiler::CompileOptions;
INSTANTIATE_TEST_SUITE_P(
    Plans, RecordedPlan,
    testing::Values(
        Case{"no_shard", "gpt2", {.replica = 8, .shard = 1}, [](Options& o) { o.strategy = "no_shard"; }},
        Case{"zero1", "gpt2", {.replica = 1, .shard = 8}, [](Options& o) { o.strategy = "zero1"; }},
        Case{
            "full_shard", "llama", {.replica = 1, .shard = 8}, [](Options& o) { o.strategy = "full_shard"; }},
        Case{"hybrid",
             "free_transformer",
             {.replica = 2, .shard = 4},
             [](Options& o) { o.strategy = "hybrid_shard"; }},
        Case{"offload",
             "gpt2",
             {.replica = 1, .shard = 2},
             [](Options& o) {
               o.strategy = "full_shard";
               o.offloadOptimizer = o.offloadParameters = o.offloadActivations = true;
               o.paramDtype = "bf16";
               o.remat = "every_n:1";
             }},
        Case{"host_step",
             "gpt2",
             {.replica = 1, .shard = 2},
             [](Options& o) {
               o.strategy = "zero1";
               o.offloadOptimizer = o.offloadStep = true;
               o.paramDtype = "bf16";
               o.optimizer = "muon";
             }},
        Case{"micro_steps",
             "gpt2",
             {.replica = 1, .shard = 4},
             [](Options& o) {
               o.strategy = "full_shard";
               o.microSteps = 4;
             }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ft
