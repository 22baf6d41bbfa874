#include <algorithm>
#include <iterator>

#include "fmt/format.h"
#include "runtime/plan/describe.h"
#include "tools/ftc/explain.h"
#include "tools/ftc/numbers.h"

namespace ftc {
namespace {

using Out = std::back_insert_iterator<std::string>;

constexpr const char* kClassNames[] = {"parameters",  "gradients",      "optimizer state",
                                       "activations", "gathered units", "communication staging",
                                       "workspace",   "inputs, outputs"};
static_assert(std::size(kClassNames) == ft::proto::MemoryClass_ARRAYSIZE);

void Row(Out out, const char* name, uint64_t bytes) {
  fmt::format_to(out, "  {:<24}{:>24}{:>14}\n", name, Grouped(bytes), ShortBytes(bytes));
}

void ArenaText(Out out, const char* title, const ft::ArenaReport& arena) {
  fmt::format_to(out, "\n{}, in bytes{}\n", title, arena.peak.empty() ? "" : ", at its peak: " + arena.peak);
  for (size_t i = 0; i < arena.by_class.size(); ++i) Row(out, kClassNames[i], arena.by_class[i]);
  Row(out, "padding", arena.padding);
}

void MemoryText(Out out, const ft::MemoryReport& memory) {
  ArenaText(out, "Memory of each rank", memory.device);
  Row(out, "arena", memory.device.arena_bytes);
  if (memory.host.arena_bytes > 0) ArenaText(out, "Host memory of each rank", memory.host);
  Row(out, "host arena", memory.host.arena_bytes);
  const auto& rest = memory.at_rest;
  fmt::format_to(out, "\nAt rest, of these\n");
  Row(out, "parameters", rest.parameters);
  Row(out, "gradients", rest.gradients);
  if (rest.accumulated > 0) Row(out, "  of it accumulated", rest.accumulated);
  Row(out, "optimizer state", rest.optimizer_state);
  if (rest.master > 0) Row(out, "  of it master weights", rest.master);
  Row(out, "together", rest.total());
  if (rest.host > 0) Row(out, "  of it in host memory", rest.host);
}

void LiveText(Out out, const ft::proto::Plan& plan, const ft::ArenaReport& arena, const char* where,
              int limit) {
  if (arena.live.empty() || limit == 0) return;
  const size_t shown = std::min<size_t>(limit, arena.live.size());
  fmt::format_to(out, "\nThe largest of {} buffers live {}\n", arena.live.size(), where);
  uint64_t sum = 0;
  for (size_t i = 0; i < shown; ++i) {
    const ft::proto::Buffer& buffer = plan.buffers(arena.live[i].buffer);
    sum += arena.live[i].bytes;
    fmt::format_to(out, "  {:>18}{:>12}  {:<22}{:<28} {}\n", Grouped(arena.live[i].bytes),
                   ShortBytes(arena.live[i].bytes), kClassNames[buffer.class_()],
                   buffer.layer().empty() ? "-" : buffer.layer(),
                   buffer.name() + (buffer.persistent() ? ", persistent" : ""));
  }
  uint64_t rest = 0;
  for (size_t i = shown; i < arena.live.size(); ++i) rest += arena.live[i].bytes;
  fmt::format_to(
      out, "  {:>18}{:>12}  these{}\n", Grouped(sum), ShortBytes(sum),
      rest == 0 ? "" : fmt::format("; {} in the other {}", ShortBytes(rest), arena.live.size() - shown));
}

void TrafficRow(Out out, const std::string& name, const ft::Traffic& traffic, size_t width) {
  const auto cell = [](const ft::TransferTraffic& t) {
    return t.count == 0 ? "-" : fmt::format("{} in {}", ShortBytes(t.bytes), t.count);
  };
  fmt::format_to(out, "  {:<{}}{:>20}{:>20}{:>20}{:>14}", name, width, cell(traffic.all_gather),
                 cell(traffic.reduce_scatter), cell(traffic.all_reduce), ShortBytes(traffic.total_bytes()));
  if (traffic.h2d.count + traffic.d2h.count > 0)
    fmt::format_to(out, "   from host {}, to host {}", cell(traffic.h2d), cell(traffic.d2h));
  fmt::format_to(out, "\n");
}

void TrafficText(Out out, const ft::proto::Plan& plan, const ft::PlanReport& report) {
  const ft::TrafficReport& traffic = report.traffic;
  size_t width = 26;
  for (const auto& unit : plan.units()) width = std::max(width, unit.name().size() + 2);
  fmt::format_to(out, "\nSent by each rank in a step{}, and in how many collectives\n",
                 report.micro_steps > 1 ? fmt::format(" of {} micro-steps", report.micro_steps) : "");
  fmt::format_to(out, "  {:<{}}{:>20}{:>20}{:>20}{:>14}\n", "unit", width, "all_gather", "reduce_scatter",
                 "all_reduce", "all");
  for (int i = 0; i < plan.units_size(); ++i)
    TrafficRow(out, plan.units(i).name(), traffic.by_unit[i], width);
  TrafficRow(out, "scalars", traffic.other, width);
  TrafficRow(out, "all", traffic.total, width);
  if (!plan.two_axes()) return;
  TrafficRow(out, "of it over shard", traffic.by_axis[ft::proto::AXIS_SHARD], width);
  TrafficRow(out, "of it over replica", traffic.by_axis[ft::proto::AXIS_REPLICA], width);
  TrafficRow(out, "of it over the world", traffic.by_axis[ft::proto::AXIS_WORLD], width);
}

void FlopsText(Out out, const ft::FlopsReport& flops) {
  fmt::format_to(out, "\nFLOPs of each rank in a step\n");
  const auto row = [&](const char* name, uint64_t number) {
    fmt::format_to(out, "  {:<24}{:>24}{:>14}\n", name, Grouped(number), ShortFlops(number));
  };
  row("forward", flops.forward);
  if (flops.recompute > 0) row("recomputation", flops.recompute);
  row("backward", flops.backward);
  row("optimizer", flops.optimizer);
  row("all", flops.total());
  if (flops.recompute > 0) row("without recomputation", flops.total() - flops.recompute);
}

void SavedText(Out out, const Explained& explained) {
  const auto& saved = explained.report.saved;
  if (saved.empty()) return;
  fmt::format_to(out, "\nActivations between forward and backward; seconds on {}\n", explained.target.name);
  fmt::format_to(out, "  {:<10} {:<32}{:>7}{:>14}{:>14}{:>12}{:>14}\n", "choice", "value", "count", "bytes",
                 "FLOPs again", "costs", "frees per s");
  for (const ft::SavedReport& row : saved) {
    const bool kept = row.choice == "keep";
    fmt::format_to(
        out, "  {:<10} {:<32}{:>7}{:>14}{:>14}{:>12}{:>14}\n", row.choice, row.value, row.count,
        ShortBytes(row.bytes), ShortFlops(row.flops), kept ? "-" : ShortSeconds(row.seconds),
        kept || row.seconds == 0 ? "-" : ShortBytes(static_cast<uint64_t>(row.bytes / row.seconds)));
  }
}

}  // namespace

std::string ExplainText(const Explained& explained, int peak) {
  const auto& [name, plan, bound, report, target, communicators] = explained;
  std::string text;
  const Out out(text);
  fmt::format_to(out, "{}, strategy {}, {} ranks (replica {} x shard {}), batch {} x {} tokens per rank\n",
                 plan.model(), plan.strategy(), bound.mesh.world_size(), bound.mesh.replica, bound.mesh.shard,
                 plan.batch(), plan.seq_len());
  fmt::format_to(out, "{} parameters in {} units\n", Grouped(report.parameters), plan.units_size());
  MemoryText(out, report.memory);
  LiveText(out, plan, report.memory.device, "at the peak", peak);
  LiveText(out, plan, report.memory.host, "at the peak of host memory", peak);
  fmt::format_to(out, "\nBeyond the arena, by the way ranks talk\n");
  Row(out, "shared memory (shm)", communicators.shm);
  Row(out, "TCP (gloo)", communicators.gloo);
  TrafficText(out, plan, report);
  FlopsText(out, report.flops);
  SavedText(out, explained);
  return text;
}

}  // namespace ftc
