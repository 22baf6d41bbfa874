#include "tools/ftexec/reported_position.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "runtime/plan/verify_transfers.h"

namespace ft {
namespace {

std::string StreamName(proto::Stream stream) { return absl::AsciiStrToLower(proto::Stream_Name(stream)); }

// "shard"; empty for none.
std::string AxisName(proto::Axis axis) {
  return axis == proto::AXIS_NONE ? "" : absl::AsciiStrToLower(proto::Axis_Name(axis)).substr(5);
}

const proto::Instruction* InstructionOf(const CommandInfo& info, const proto::Plan& plan) {
  if (info.instruction < 0 || info.program < 0 || info.program >= plan.programs_size()) return nullptr;
  const auto& instructions = plan.programs(info.program).instructions();
  return info.instruction < instructions.size() ? &instructions[static_cast<int>(info.instruction)] : nullptr;
}

ReportedInstruction Reported(const CommandInfo& info, const proto::Plan& plan) {
  ReportedInstruction reported;
  reported.title = info.title;
  reported.category = info.category;
  const proto::Instruction* instruction = InstructionOf(info, plan);
  if (instruction == nullptr) return reported;
  reported.program = plan.programs(info.program).name();
  reported.instruction = info.instruction;
  reported.layer = instruction->layer();
  if (IsCollective(instruction->opcode()) && info.category != "wait")
    reported.axis = AxisName(instruction->axis());
  return reported;
}

// Also what it works on.
ReportedInstruction ReportedRunning(const CommandInfo& info, const proto::Plan& plan,
                                    const OperandResolver& resolver) {
  ReportedInstruction reported = Reported(info, plan);
  const proto::Instruction* instruction = InstructionOf(info, plan);
  if (instruction == nullptr || info.category == "wait") return reported;
  reported.shapes = ShapesText(*instruction, resolver);
  reported.bytes = info.bytes;
  return reported;
}

ReportedStream Reported(const StreamPosition& stream, const ExecutorPosition& position,
                        const proto::Plan& plan, const OperandResolver& resolver) {
  const auto seconds = [](int64_t from_ns, int64_t to_ns) {
    return static_cast<double>(to_ns - from_ns) * 1e-9;
  };
  ReportedStream reported;
  reported.name = StreamName(stream.stream);
  reported.is_followed = stream.is_followed;
  if (!stream.is_followed) {
    reported.finished = stream.task.sequence - (stream.task.running ? 1 : 0);
    if (stream.task.running && stream.task.info != nullptr)
      reported.current = ReportedRunning(*stream.task.info, plan, resolver);
    return reported;
  }
  reported.finished = stream.commands.finished;
  if (const auto& running = stream.commands.running; running.has_value()) {
    reported.current = ReportedRunning(*running->info, plan, resolver);
    reported.current->began_ago = seconds(running->begin_ns, position.taken_ns);
  }
  for (const CommandHistory::Entry& entry : stream.commands.recent) {
    ReportedInstruction& done = reported.recent.emplace_back(Reported(*entry.info, plan));
    done.ended_ago = seconds(entry.end_ns, position.taken_ns);
    done.took = seconds(entry.begin_ns, entry.end_ns);
  }
  return reported;
}

}  // namespace

void AddPosition(const ExecutorPosition& position, const proto::Plan& plan, const OperandResolver& resolver,
                 RankReport& report) {
  report.runs = position.runs;
  if (position.program >= 0) {
    report.program = plan.programs(position.program).name();
    report.program_seconds = static_cast<double>(position.taken_ns - position.program_ns) * 1e-9;
  }
  for (const StreamPosition& stream : position.streams)
    report.streams.push_back(Reported(stream, position, plan, resolver));
  for (const CollectivePosition& count : position.collectives) {
    report.collectives.push_back({.stream = StreamName(count.stream),
                                  .axis = AxisName(count.axis),
                                  .entered = count.entered,
                                  .left = count.left});
  }
}

}  // namespace ft
