#include <iterator>

#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "runtime/base/numbers.h"
#include "runtime/plan/describe.h"
#include "tools/ftc/against/comparison.h"

namespace ftc {
namespace {

using Json = nlohmann::ordered_json;
using Out = std::back_insert_iterator<std::string>;

std::string Ratio(const Against& seconds) {
  return seconds.predicted > 0 ? fmt::format("{:.2f}", seconds.median / seconds.predicted) : "-";
}

void Row(Out out, const std::string& name, const std::string& runs, const Against& seconds) {
  fmt::format_to(out, "  {:<60}{:>6}{:>12}{:>12}{:>12}{:>7}\n", name, runs,
                 ft::ShortSeconds(seconds.predicted), ft::ShortSeconds(seconds.median),
                 seconds.slowest > 0 ? ft::ShortSeconds(seconds.slowest) : "-", Ratio(seconds));
}

void Heading(Out out, const char* what, const char* runs) {
  fmt::format_to(out, "  {:<60}{:>6}{:>12}{:>12}{:>12}{:>7}\n", what, runs, "predicted", "median rank",
                 "slowest", "ratio");
}

// "train_step 78: reduce_scatter model.layers.1".
std::string PlaceOf(const ft::proto::Plan& plan, const InstructionAgainst& one) {
  const ft::proto::Program& program = plan.programs(one.program);
  const ft::proto::Instruction& instruction = program.instructions(one.instruction);
  std::string place =
      fmt::format("{} {}: {}", program.name(), one.instruction, ft::InstructionTitle(plan, instruction));
  if (instruction.opcode() == ft::proto::KERNEL && !instruction.layer().empty())
    place += " of " + instruction.layer();
  return place;
}

Json ToJson(const Against& seconds) {
  return {
      {"predicted", seconds.predicted}, {"median_rank", seconds.median}, {"slowest_rank", seconds.slowest}};
}

}  // namespace

std::string AgainstText(const Explained& explained, const MeasuredTrace& trace,
                        const Comparison& comparison) {
  std::string text;
  const Out out(text);
  fmt::format_to(out, "{}, strategy {}, {} of {} ranks (replica {} x shard {}) on {}, against {}\n",
                 explained.plan.model(), explained.plan.strategy(), comparison.ranks,
                 trace.run.replica * trace.run.shard, trace.run.replica, trace.run.shard, trace.run.device,
                 explained.target.name());
  fmt::format_to(out, "{} step{} compared, the first {} left out\n\n", comparison.steps,
                 comparison.steps == 1 ? "" : "s", comparison.left_out);
  if (!trace.run.link.empty())
    fmt::format_to(out, "measured over an {}: predicted so only where the target was calibrated over it\n\n",
                   trace.run.link);
  Heading(out, "a step", "");
  Row(out, "traced, from first event to last", "", comparison.step);
  if (comparison.untraced.median > 0) Row(out, "not traced, as metrics have it", "", comparison.untraced);
  Row(out, "kernels of stream compute", "", comparison.computing);
  Row(out, "exposed: compute waited", "", comparison.exposed);
  if (comparison.launch_s > 0)
    fmt::format_to(out, "  (traced steps replay no recorded graph: predicted with {} a launch)\n",
                   ft::ShortSeconds(comparison.launch_s));
  fmt::format_to(out, "\n");
  Heading(out, "by class, in a step", "runs");
  for (const ClassAgainst& one : comparison.classes)
    Row(out, one.name, fmt::format("{}", one.runs), one.seconds);
  fmt::format_to(out, "\n");
  Heading(out, "furthest off, in a step", "runs");
  for (const InstructionAgainst& one : comparison.worst)
    Row(out, PlaceOf(explained.plan, one), fmt::format("{}", one.runs), one.seconds);
  if (comparison.unmeasured > 0)
    fmt::format_to(out, "\n{} runs of instructions have no event on some rank and are in no class\n",
                   comparison.unmeasured);
  return text;
}

std::string AgainstJson(const Explained& explained, const MeasuredTrace& trace,
                        const Comparison& comparison) {
  Json classes = Json::array(), worst = Json::array();
  for (const ClassAgainst& one : comparison.classes)
    classes.push_back({{"class", one.name}, {"runs", one.runs}, {"seconds", ToJson(one.seconds)}});
  for (const InstructionAgainst& one : comparison.worst) {
    const ft::proto::Program& program = explained.plan.programs(one.program);
    const ft::proto::Instruction& instruction = program.instructions(one.instruction);
    worst.push_back({{"program", program.name()},
                     {"instruction", one.instruction},
                     {"title", ft::InstructionTitle(explained.plan, instruction)},
                     {"layer", instruction.layer()},
                     {"runs", one.runs},
                     {"seconds", ToJson(one.seconds)}});
  }
  const Json all = {
      {"plan", trace.run.plan},
      {"target", explained.target.name()},
      {"device", trace.run.device},
      {"mesh", {{"replica", trace.run.replica}, {"shard", trace.run.shard}}},
      {"emulated_link", trace.run.link.empty() ? Json() : Json(trace.run.link)},
      {"ranks", comparison.ranks},
      {"steps", comparison.steps},
      {"steps_left_out", comparison.left_out},
      {"step", ToJson(comparison.step)},
      {"untraced_step", comparison.untraced.median > 0 ? Json(comparison.untraced.median) : Json()},
      {"untraced_step_predicted", comparison.untraced.predicted},
      {"launch_seconds_assumed", comparison.launch_s > 0 ? Json(comparison.launch_s) : Json()},
      {"compute", ToJson(comparison.computing)},
      {"exposed", ToJson(comparison.exposed)},
      {"classes", std::move(classes)},
      {"worst", std::move(worst)},
      {"unmeasured", comparison.unmeasured}};
  return all.dump(2, ' ', true) + "\n";
}

}  // namespace ftc
