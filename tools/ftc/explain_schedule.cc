// ftc explain --schedule: the streams of a step side by side, as they would run on a named machine.
#include <iterator>

#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "runtime/base/numbers.h"
#include "runtime/cost/simulate.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/report.h"
#include "runtime/plan/verify_transfers.h"
#include "tools/ftc/explain.h"

namespace ftc {
namespace {

using Json = nlohmann::ordered_json;
using Out = std::back_insert_iterator<std::string>;

constexpr const char* kStreamNames[] = {"compute", "gather",       "reduce", "h2d",
                                        "d2h",     "host_compute", "replica"};
static_assert(std::size(kStreamNames) == ft::proto::Stream_ARRAYSIZE);

// What runs beside computation, or kernels of one layer and phase that follow each other.
struct ScheduleRow {
  int first = 0, last = 0;  // instructions
  int kernels = 0;          // 0: a transfer, or a kernel of the host
};

bool Continue(const ScheduleRow& row, const ft::proto::Program& program,
              const ft::proto::Instruction& kernel) {
  const ft::proto::Instruction& before = program.instructions(row.last);
  return row.kernels > 0 && before.layer() == kernel.layer() && before.phase() == kernel.phase();
}

std::vector<ScheduleRow> RowsOf(const ft::proto::Program& program) {
  std::vector<ScheduleRow> rows;
  for (int i = 0; i < program.instructions_size(); ++i) {
    const ft::proto::Instruction& instruction = program.instructions(i);
    const bool beside = ft::RunsBeside(instruction);
    if (beside) rows.push_back({.first = i, .last = i});
    if (beside || instruction.opcode() != ft::proto::KERNEL) continue;
    if (rows.empty() || !Continue(rows.back(), program, instruction))
      rows.push_back({.first = i, .last = i, .kernels = 0});
    rows.back().last = i;
    ++rows.back().kernels;
  }
  return rows;
}

std::string WhatOf(const ft::proto::Plan& plan, const ft::proto::Program& program, const ScheduleRow& row) {
  const ft::proto::Instruction& first = program.instructions(row.first);
  if (ft::IsTransfer(first.opcode())) return ft::InstructionTitle(plan, first);
  std::string what = row.kernels <= 1 ? first.kernel() : fmt::format("{} kernels", row.kernels);
  if (!first.layer().empty()) what += " of " + first.layer();
  if (!first.phase().empty()) what += ", " + first.phase();
  return what;
}

std::string Milliseconds(double seconds) { return fmt::format("{:.3f}", seconds * 1e3); }

void ProgramText(Out out, const Explained& explained, int number) {
  const ft::proto::Program& program = explained.plan.programs(number);
  const ft::SimulatedProgram run =
      ft::SimulateProgram(explained.plan, explained.bound, number, explained.target);
  fmt::format_to(out, "\n{}, in ms{}\n", program.name(),
                 ft::RunsInStep(explained.plan, program) > 1
                     ? fmt::format(", {} times", ft::RunsInStep(explained.plan, program))
                     : "");
  fmt::format_to(out, "  {:>6} {:<12} {:<48} {:>11} {:>11} {:>8} {:>9}  {}\n", "at", "stream", "what",
                 "begin", "end", "waited", "exposed", "reason");
  for (const ScheduleRow& row : RowsOf(program)) {
    const ft::SimulatedInstruction& first = run.instructions[row.first];
    fmt::format_to(out, "  {:>6} {:<12} {:<48} {:>11} {:>11}", row.first,
                   kStreamNames[program.instructions(row.first).stream()],
                   WhatOf(explained.plan, program, row), Milliseconds(first.begin),
                   Milliseconds(run.instructions[row.last].end));
    if (row.kernels == 0) {
      fmt::format_to(out, " {:>8} {:>9}  {}", first.waited_at, Milliseconds(first.exposed),
                     program.instructions(row.first).reason());
    }
    fmt::format_to(out, "\n");
  }
}

void TotalsText(Out out, const ft::SimulatedProgram& step) {
  fmt::format_to(out, "\nA step\n");
  const auto row = [&](const char* name, double seconds) {
    fmt::format_to(out, "  {:<24}{:>14} ms\n", name, Milliseconds(seconds));
  };
  row("computation", step.compute_seconds);
  for (size_t stream = ft::proto::GATHER; stream < step.busy_seconds.size(); ++stream) {
    if (step.busy_seconds[stream] > 0) row(kStreamNames[stream], step.busy_seconds[stream]);
  }
  if (step.slowed_seconds > 0) row("of computation: slowed", step.slowed_seconds);
  row("exposed communication", step.exposed_seconds);
  if (step.launch_seconds > 0) row("waiting for launches", step.launch_seconds);
  row("together", step.seconds);
}

Json ProgramJson(const Explained& explained, int number) {
  const ft::proto::Program& program = explained.plan.programs(number);
  const ft::SimulatedProgram run =
      ft::SimulateProgram(explained.plan, explained.bound, number, explained.target);
  Json rows = Json::array();
  for (const ScheduleRow& row : RowsOf(program)) {
    const ft::proto::Instruction& first = program.instructions(row.first);
    const ft::SimulatedInstruction& times = run.instructions[row.first];
    Json one = {{"position", row.first},
                {"stream", kStreamNames[first.stream()]},
                {"what", WhatOf(explained.plan, program, row)},
                {"kernels", row.kernels},
                {"begin", times.begin},
                {"end", run.instructions[row.last].end}};
    if (row.kernels == 0) {
      one["waited_at"] = times.waited_at;
      one["exposed"] = times.exposed;
      one["reason"] = first.reason();
    }
    rows.push_back(std::move(one));
  }
  return {{"name", program.name()},
          {"runs_per_step", ft::RunsInStep(explained.plan, program)},
          {"rows", std::move(rows)}};
}

Json TotalsJson(const ft::SimulatedProgram& step) {
  Json streams;
  for (size_t stream = ft::proto::GATHER; stream < step.busy_seconds.size(); ++stream)
    streams[kStreamNames[stream]] = step.busy_seconds[stream];
  return {{"compute", step.compute_seconds}, {"communication", std::move(streams)},
          {"slowed", step.slowed_seconds},   {"exposed", step.exposed_seconds},
          {"launches", step.launch_seconds}, {"total", step.seconds}};
}

}  // namespace

std::string ScheduleText(const Explained& explained) {
  const auto& mesh = explained.bound.mesh;
  std::string text;
  const Out out(text);
  fmt::format_to(out, "{}, strategy {}, {} ranks (replica {} x shard {}), simulated on {}\n",
                 explained.plan.model(), explained.plan.strategy(), mesh.world_size(), mesh.replica,
                 mesh.shard, explained.target.name());
  for (int i = 0; i < explained.plan.programs_size(); ++i) {
    if (ft::RunsInStep(explained.plan, explained.plan.programs(i)) > 0) ProgramText(out, explained, i);
  }
  TotalsText(out, explained.step);
  return text;
}

std::string ScheduleJson(const Explained& explained) {
  const auto& mesh = explained.bound.mesh;
  Json programs = Json::array();
  for (int i = 0; i < explained.plan.programs_size(); ++i) {
    if (ft::RunsInStep(explained.plan, explained.plan.programs(i)) > 0)
      programs.push_back(ProgramJson(explained, i));
  }
  return Json{{"model", explained.plan.model()},
              {"strategy", explained.plan.strategy()},
              {"mesh", {{"replica", mesh.replica}, {"shard", mesh.shard}}},
              {"target", explained.target.name()},
              {"programs", std::move(programs)},
              {"seconds", TotalsJson(explained.step)}}
             .dump(2, ' ', true) +
         "\n";
}

}  // namespace ftc
