#include "runtime/executor/program_schedule.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/mesh.h"

namespace ft {

class ScheduleBuilder {
 public:
  ScheduleBuilder(const ScheduleContext& context, int program)
      : context_(context),
        program_(program),
        instructions_(context.plan.programs(program).instructions()),
        has_origin_(context.device.records() || !context.device.host_accessible()) {}

  absl::StatusOr<ProgramSchedule> Build() {
    MakeEvents();
    const size_t inputs = AddInputs();
    if (has_origin_) Fork();
    for (int i = 0; i < instructions_.size(); ++i) {
      const size_t before = schedule_.commands_.size();
      FT_RETURN_IF_ERROR(AddInstruction(i));
      const size_t added = schedule_.commands_.size() - before;
      if (added != 0) Extend(instructions_[i].stream(), added);
    }
    if (has_origin_) Join();
    const Command* next = schedule_.commands_.data();
    schedule_.inputs_ = absl::MakeConstSpan(next, inputs);
    schedule_.uses_[proto::COMPUTE] = inputs > 0;
    next += inputs;
    for (const auto& [stream, count] : runs_) {
      schedule_.uses_[static_cast<size_t>(stream)] = true;
      schedule_.batches_.push_back({stream, absl::MakeConstSpan(next, count)});
      next += count;
    }
    return std::move(schedule_);
  }

 private:
  // Commands of one stream in a row.
  struct StreamRun {
    int stream;
    size_t count;
  };

  void Extend(int stream, size_t count) {
    if (runs_.empty() || runs_.back().stream != stream) runs_.push_back({stream, 0});
    runs_.back().count += count;
  }

  // One command of `stream`.
  void Add(int stream, const Command& command) {
    schedule_.commands_.push_back(command);
    Extend(stream, 1);
  }

  std::set<int> OtherStreams() const {
    std::set<int> streams;
    for (const proto::Instruction& instruction : instructions_) {
      if (instruction.stream() != proto::COMPUTE && instruction.opcode() != proto::RELEASE)
        streams.insert(instruction.stream());
    }
    return streams;
  }

  // How many commands: they belong to no batch.
  size_t AddInputs() {
    auto regions = context_.ports.ToDevice(context_.plan.programs(program_), context_.resolver);
    if (context_.device.host_accessible()) {
      schedule_.copied_by_host_ = std::move(regions);
      return 0;
    }
    AddPortCopy("inputs", std::move(regions));
    if (schedule_.commands_.empty()) return 0;
    schedule_.inputs_copied_ = context_.device.CreateEvent();
    schedule_.commands_.push_back(Command::Record(schedule_.inputs_copied_.get()));
    return schedule_.commands_.size();
  }

  void Fork() {
    const std::set<int> others = OtherStreams();
    if (others.empty()) return;
    Event* begun = NewEvent();
    Add(proto::COMPUTE, Command::Record(begun));
    for (const int stream : others) Add(stream, Command::Wait(begun, NewInfo("wait for the begin", "wait")));
  }

  void Join() {
    for (const int stream : OtherStreams()) {
      Event* done = NewEvent();
      Add(stream, Command::Record(done));
      Add(proto::COMPUTE, Command::Wait(done, NewInfo("wait for the end of other streams", "wait")));
    }
    const size_t before = schedule_.commands_.size();
    AddPortCopy("outputs", context_.ports.FromDevice(context_.plan.programs(program_), context_.resolver));
    if (schedule_.commands_.size() > before) Extend(proto::COMPUTE, schedule_.commands_.size() - before);
  }

  void AddPortCopy(const char* title, std::vector<CopyRegion> regions) {
    if (regions.empty()) return;
    CommandInfo* info = NewInfo(title, "copy");
    for (const CopyRegion& region : regions) info->bytes += region.bytes;
    schedule_.copies_.push_back(std::make_unique<std::vector<CopyRegion>>(std::move(regions)));
    schedule_.commands_.push_back(Command::Copy(schedule_.copies_.back().get(), info));
  }

  Event* NewEvent() {
    schedule_.events_.push_back(context_.device.CreateEvent());
    return schedule_.events_.back().get();
  }

  // About something that is no instruction.
  CommandInfo* NewInfo(std::string title, std::string category) {
    schedule_.infos_.push_back(std::make_unique<CommandInfo>());
    CommandInfo* info = schedule_.infos_.back().get();
    info->title = std::move(title);
    info->category = std::move(category);
    info->instruction = -1;
    return info;
  }

  void MakeEvents() {
    events_.assign(instructions_.size(), nullptr);
    for (const proto::Instruction& instruction : instructions_) {
      for (uint32_t earlier : instruction.after()) {
        if (events_[earlier] != nullptr) continue;
        events_[earlier] = NewEvent();
      }
    }
  }

  absl::Status AddInstruction(int i) {
    const proto::Instruction& instruction = instructions_[i];
    for (uint32_t earlier : instruction.after()) {
      CommandInfo* info = NewInfo(i);
      info->title =
          absl::StrCat("wait for ", InstructionTitle(context_.plan, instructions_[earlier]), " #", earlier);
      info->category = "wait";
      schedule_.commands_.push_back(Command::Wait(events_[earlier], info));
    }
    switch (instruction.opcode()) {
      case proto::KERNEL:
        if (context_.resolver.Runs(instruction)) FT_RETURN_IF_ERROR(AddKernel(i));
        break;
      case proto::ALL_GATHER:
      case proto::REDUCE_SCATTER:
      case proto::ALL_REDUCE:
      case proto::ALL_TO_ALL:
        FT_RETURN_IF_ERROR(AddCollective(i));
        break;
      case proto::COPY:
        AddCopy(i);
        break;
      default:  // WAIT has done its work, RELEASE has none
        break;
    }
    if (events_[i] != nullptr) schedule_.commands_.push_back(Command::Record(events_[i]));
    return absl::OkStatus();
  }

  CommandInfo* NewInfo(int i) {
    const proto::Instruction& instruction = instructions_[i];
    schedule_.infos_.push_back(std::make_unique<CommandInfo>());
    CommandInfo* info = schedule_.infos_.back().get();
    info->title = InstructionTitle(context_.plan, instruction);
    info->category = instruction.phase();
    info->program = program_;
    info->instruction = i;
    return info;
  }

  absl::Status AddKernel(int i) {
    const proto::Instruction& instruction = instructions_[i];
    const KernelOperands operands = context_.resolver.Operands(instruction);
    KernelAttributes attributes = AttributesOf(instruction);
    if (instruction.cluster_plus_one() != 0)
      attributes.SetCluster(context_.clusters[instruction.cluster_plus_one() - 1]);
    absl::StatusOr<std::unique_ptr<Kernel>> kernel =
        instruction.stream() == proto::HOST_COMPUTE
            ? context_.device.CreateHostKernel(instruction.kernel(), operands, attributes)
            : context_.device.CreateKernel(instruction.kernel(), operands, attributes);
    if (!kernel.ok()) {
      const std::string_view dtype =
          Name(!operands.in.empty() && operands.in[0].present() ? operands.in[0].dtype
               : !operands.out.empty()                          ? operands.out[0].dtype
                                                                : DType::kF32);
      return absl::FailedPreconditionError(
          absl::StrCat(InstructionPlace(context_.plan, program_, i), ", ", std::string(dtype), " on ",
                       std::string(context_.device.name()), ": ", kernel.status().message()));
    }
    CommandInfo* info = NewInfo(i);
    info->flops = instruction.flops();
    info->bytes = instruction.bytes();
    schedule_.kernels_.push_back(*std::move(kernel));
    schedule_.commands_.push_back(Command::Launch(schedule_.kernels_.back().get(), info));
    return absl::OkStatus();
  }

  absl::Status AddCollective(int i) {
    const proto::Instruction& instruction = instructions_[i];
    CommandInfo* info = NewInfo(i);
    info->bytes = BytesOf(instruction.opcode() == proto::ALL_GATHER ? instruction.out() : instruction.in());
    CollectiveSite site{.place = InstructionPlace(context_.plan, program_, i),
                        .title = info->title,
                        .mesh = context_.bound.mesh,
                        .count = &context_.counts[instruction.stream()][instruction.axis()]};
    Communicator* communicator = context_.communicators.at(instruction.stream(), instruction.axis());
    if (communicator == nullptr)
      return absl::InternalError(
          absl::StrCat(site.place, ": there is no communicator for its stream and axis"));
    FT_ASSIGN_OR_RETURN(std::unique_ptr<HostTask> task,
                        MakeCollectiveTask(instruction, context_.resolver, *communicator, std::move(site),
                                           context_.on_failure));
    schedule_.tasks_.push_back(std::move(task));
    schedule_.commands_.push_back(Command::Call(schedule_.tasks_.back().get(), info));
    return absl::OkStatus();
  }

  void AddCopy(int i) {
    const proto::Instruction& instruction = instructions_[i];
    auto regions = std::make_unique<std::vector<CopyRegion>>();
    for (int pair = 0; pair < instruction.in_size(); ++pair) {
      const Tensor from = context_.resolver.Resolve(instruction.in(pair));
      const Tensor to = context_.resolver.Resolve(instruction.out(pair));
      regions->push_back({from.data, to.data, from.elements() * SizeOf(from.dtype)});
    }
    CommandInfo* info = NewInfo(i);
    info->bytes = BytesOf(instruction.in());
    schedule_.copies_.push_back(std::move(regions));
    schedule_.commands_.push_back(Command::Copy(schedule_.copies_.back().get(), info));
  }

  uint64_t BytesOf(const google::protobuf::RepeatedPtrField<proto::Operand>& operands) const {
    uint64_t bytes = 0;
    for (const proto::Operand& operand : operands) {
      const Tensor tensor = context_.resolver.Resolve(operand);
      bytes += tensor.elements() * SizeOf(tensor.dtype);
    }
    return bytes;
  }

  const ScheduleContext& context_;
  const int program_;
  const google::protobuf::RepeatedPtrField<proto::Instruction>& instructions_;
  const bool has_origin_;
  ProgramSchedule schedule_;
  std::vector<Event*> events_;  // by instruction; null: nobody waits for it
  std::vector<StreamRun> runs_;
};

absl::StatusOr<ProgramSchedule> ProgramSchedule::Create(const ScheduleContext& context, int program) {
  return ScheduleBuilder(context, program).Build();
}

}  // namespace ft
