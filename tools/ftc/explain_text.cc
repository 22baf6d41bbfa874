#include <iterator>

#include "fmt/format.h"
#include "tools/ftc/commands.h"

namespace ftc {
namespace {

using Out = std::back_insert_iterator<std::string>;

constexpr const char* kClassNames[] = {"parameters",  "gradients",      "optimizer state",
                                       "activations", "gathered units", "communication staging",
                                       "workspace",   "inputs, outputs"};
static_assert(std::size(kClassNames) == ft::proto::MemoryClass_ARRAYSIZE);

// "1,234,567"
std::string Grouped(uint64_t number) {
  std::string digits = fmt::format("{}", number);
  for (int place = static_cast<int>(digits.size()) - 3; place > 0; place -= 3) digits.insert(place, ",");
  return digits;
}

// Three significant digits and a prefix, of base 1024 for bytes and 1000 for the rest.
std::string Short(double value, double base, const char* unit) {
  constexpr const char* kPrefixes[] = {"", "K", "M", "G", "T", "P", "E"};
  size_t power = 0;
  for (; value >= base && power + 1 < std::size(kPrefixes); ++power) value /= base;
  const char* binary = base == 1024 && power > 0 ? "i" : "";
  return fmt::format("{:.{}f} {}{}{}", value,
                     power == 0 || value >= 100 ? 0
                     : value >= 10              ? 1
                                                : 2,
                     kPrefixes[power], binary, unit);
}

void Row(Out out, const char* name, uint64_t bytes) {
  fmt::format_to(out, "  {:<24}{:>24}{:>14}\n", name, Grouped(bytes), Short(bytes, 1024, "B"));
}

void MemoryText(Out out, const ft::MemoryReport& memory) {
  fmt::format_to(out, "\nMemory of each rank, in bytes{}\n",
                 memory.peak.empty() ? "" : ", at its peak: " + memory.peak);
  for (size_t i = 0; i < memory.by_class.size(); ++i) Row(out, kClassNames[i], memory.by_class[i]);
  Row(out, "padding", memory.padding);
  Row(out, "arena", memory.arena_bytes);
  Row(out, "host arena", memory.host_arena_bytes);
  fmt::format_to(out, "\nAt rest, of these\n");
  Row(out, "parameters", memory.at_rest.parameters);
  Row(out, "gradients", memory.at_rest.gradients);
  Row(out, "optimizer state", memory.at_rest.optimizer_state);
  Row(out, "together", memory.at_rest.total());
}

void TrafficRow(Out out, const std::string& name, const ft::Traffic& traffic, size_t width) {
  const auto cell = [](const ft::CollectiveTraffic& t) {
    return t.count == 0 ? "-" : fmt::format("{} in {}", Short(t.bytes, 1024, "B"), t.count);
  };
  fmt::format_to(out, "  {:<{}}{:>20}{:>20}{:>20}{:>14}\n", name, width, cell(traffic.all_gather),
                 cell(traffic.reduce_scatter), cell(traffic.all_reduce),
                 Short(traffic.total_bytes(), 1024, "B"));
}

void TrafficText(Out out, const ft::proto::Plan& plan, const ft::TrafficReport& traffic) {
  size_t width = 26;
  for (const auto& unit : plan.units()) width = std::max(width, unit.name().size() + 2);
  fmt::format_to(out, "\nSent by each rank in a step, and in how many collectives\n");
  fmt::format_to(out, "  {:<{}}{:>20}{:>20}{:>20}{:>14}\n", "unit", width, "all_gather", "reduce_scatter",
                 "all_reduce", "all");
  for (int i = 0; i < plan.units_size(); ++i)
    TrafficRow(out, plan.units(i).name(), traffic.by_unit[i], width);
  TrafficRow(out, "scalars", traffic.other, width);
  TrafficRow(out, "all", traffic.total, width);
}

void FlopsText(Out out, const ft::FlopsReport& flops) {
  fmt::format_to(out, "\nFLOPs of each rank in a step\n");
  const auto row = [&](const char* name, uint64_t number) {
    fmt::format_to(out, "  {:<24}{:>24}{:>14}\n", name, Grouped(number), Short(number, 1000, "FLOP"));
  };
  row("forward", flops.forward);
  row("backward", flops.backward);
  row("optimizer", flops.optimizer);
  row("all", flops.total());
}

}  // namespace

std::string ExplainText(const ft::proto::Plan& plan, const ft::BoundPlan& bound, const ft::PlanReport& report,
                        const CommunicatorBytes& communicators) {
  std::string text;
  const Out out(text);
  fmt::format_to(out, "{}, strategy {}, {} ranks (replica {} x shard {}), batch {} x {} tokens per rank\n",
                 plan.model(), plan.strategy(), bound.mesh.world_size(), bound.mesh.replica, bound.mesh.shard,
                 plan.batch(), plan.seq_len());
  fmt::format_to(out, "{} parameters in {} units\n", Grouped(report.parameters), plan.units_size());
  MemoryText(out, report.memory);
  fmt::format_to(out, "\nBeyond the arena, by the way ranks talk\n");
  Row(out, "shared memory (shm)", communicators.shm);
  Row(out, "TCP (gloo)", communicators.gloo);
  TrafficText(out, plan, report.traffic);
  FlopsText(out, report.flops);
  return text;
}

}  // namespace ftc
