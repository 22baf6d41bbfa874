#include "tools/ftc/report/plan_columns.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "runtime/memplan/memplan.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/report_text.h"

namespace ftc {
namespace {

using Json = nlohmann::ordered_json;

int64_t Nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

// Numbers of the buffers that operands lie in, each once.
Json BuffersOf(const google::protobuf::RepeatedPtrField<ft::proto::Operand>& operands) {
  std::vector<uint32_t> buffers;
  for (const ft::proto::Operand& operand : operands) {
    if (operand.buffer_plus_one() != 0) buffers.push_back(operand.buffer_plus_one() - 1);
  }
  std::sort(buffers.begin(), buffers.end());
  buffers.erase(std::unique(buffers.begin(), buffers.end()), buffers.end());
  return buffers;
}

// Columns that are filled row by row.
class Columns {
 public:
  explicit Columns(std::initializer_list<const char*> names) {
    for (const char* name : names) columns_[name] = Json::array();
  }
  template <typename Value>
  void Add(const char* name, Value&& value) {
    columns_[name].push_back(std::forward<Value>(value));
  }
  Json Take() { return std::move(columns_); }

 private:
  Json columns_;
};

Json InstructionsJson(const ft::proto::Plan& plan, const ft::proto::Program& program,
                      const ft::SimulatedProgram& run, Names& names) {
  Columns columns({"opcode", "stream", "title", "layer", "phase", "reason", "begin", "end", "exposed",
                   "waited_at", "after", "in", "out"});
  for (int i = 0; i < program.instructions_size(); ++i) {
    const ft::proto::Instruction& instruction = program.instructions(i);
    const ft::SimulatedInstruction& times = run.instructions[static_cast<size_t>(i)];
    columns.Add("opcode", static_cast<int>(instruction.opcode()));
    columns.Add("stream", static_cast<int>(instruction.stream()));
    columns.Add("title", names.Add(ft::InstructionTitle(plan, instruction)));
    columns.Add("layer", names.Add(instruction.layer()));
    columns.Add("phase", names.Add(instruction.phase()));
    columns.Add("reason", names.Add(instruction.reason()));
    columns.Add("begin", Nanoseconds(times.begin));
    columns.Add("end", Nanoseconds(times.end));
    columns.Add("exposed", Nanoseconds(times.exposed));
    columns.Add("waited_at", times.waited_at);
    columns.Add("after", std::vector<uint32_t>(instruction.after().begin(), instruction.after().end()));
    columns.Add("in", BuffersOf(instruction.in()));
    columns.Add("out", BuffersOf(instruction.out()));
  }
  return columns.Take();
}

}  // namespace

std::string StreamKey(ft::proto::Stream stream) {
  return absl::AsciiStrToLower(ft::proto::Stream_Name(stream));
}

Json BuffersJson(const Explained& explained, Names& names) {
  Columns columns(
      {"name", "class", "layer", "space", "bytes", "offset", "persistent", "program", "first", "last"});
  for (int i = 0; i < explained.plan.buffers_size(); ++i) {
    const ft::proto::Buffer& buffer = explained.plan.buffers(i);
    columns.Add("name", names.Add(buffer.name()));
    columns.Add("class", static_cast<int>(buffer.class_()));
    columns.Add("layer", names.Add(buffer.layer()));
    columns.Add("space", static_cast<int>(buffer.space()));
    columns.Add("bytes", ft::RoundUp(explained.bound.sizes[static_cast<size_t>(i)]));
    columns.Add("offset", explained.bound.offsets[static_cast<size_t>(i)]);
    columns.Add("persistent", buffer.persistent() ? 1 : 0);
    columns.Add("program", buffer.program());
    columns.Add("first", buffer.first());
    columns.Add("last", buffer.last());
  }
  return columns.Take();
}

Json ProgramsJson(const Explained& explained, Names& names) {
  const ft::proto::Plan& plan = explained.plan;
  Json programs = Json::array();
  for (int i = 0; i < plan.programs_size(); ++i) {
    const ft::proto::Program& program = plan.programs(i);
    const ft::SimulatedProgram run = ft::SimulateProgram(plan, explained.bound, i, explained.target);
    programs.push_back({{"name", program.name()},
                        {"runs", ft::RunsInStep(plan, program)},
                        {"seconds", run.seconds},
                        {"compute_seconds", run.compute_seconds},
                        {"exposed_seconds", run.exposed_seconds},
                        {"instructions", InstructionsJson(plan, program, run, names)}});
  }
  return programs;
}

}  // namespace ftc
