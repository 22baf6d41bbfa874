#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "runtime/base/numbers.h"
#include "runtime/cost/uncertainty.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/float8_products.h"
#include "runtime/plan/inputs.h"
#include "runtime/plan/report_text.h"
#include "tools/ftc/explain.h"
#include "tools/ftc/unit_runs.h"

namespace ftc {
namespace {

using Out = std::back_insert_iterator<std::string>;

void Row(Out out, const char* name, uint64_t bytes) { fmt::format_to(out, "{}", ft::MemoryRow(name, bytes)); }

void LossText(Out out, const ft::proto::Plan& plan) {
  const ft::proto::Input* counted = ft::CountedInput(plan);
  fmt::format_to(out, "the loss is {} of all ranks and micro-steps\n",
                 counted == nullptr
                     ? "the mean over the losses"
                     : fmt::format("a mean over the {} that count (0 and more)", counted->name()));
}

void FrozenText(Out out, const ft::proto::Plan& plan, const ft::PlanReport& report) {
  if (plan.has_lora())
    fmt::format_to(out, "low-rank adapters of rank {} for {} modules, alpha {}{}{}\n", plan.lora().rank(),
                   plan.lora().modules_size(), plan.lora().alpha(),
                   plan.lora().rslora() ? " over the root of the rank" : "",
                   plan.lora().dropout() > 0 ? fmt::format(", dropout {}", plan.lora().dropout()) : "");
  if (report.frozen == 0) return;
  const uint64_t trained = report.parameters - report.frozen;
  fmt::format_to(out, "{} parameters ({:.2f}%) are trained; {} are frozen, {} bytes each at rest\n",
                 ft::Grouped(trained),
                 static_cast<double>(trained) / static_cast<double>(report.parameters) * 100,
                 ft::Grouped(report.frozen), report.frozen_bytes_each);
}

void Float8Text(Out out, const ft::proto::Plan& plan) {
  const ft::Float8Products float8 = ft::Float8ProductsOf(plan);
  if (float8.rounded == 0) return;
  fmt::format_to(out, "{} of {} matrix products are in fp8, {}\n", float8.rounded, float8.products,
                 float8.recipe);
}

void MemoryText(Out out, const ft::MemoryReport& memory) {
  fmt::format_to(out, "\n{}", ft::ArenaTable("Memory of each rank", memory.device));
  if (memory.host.arena_bytes > 0)
    fmt::format_to(out, "\n{}", ft::ArenaTable("Host memory of each rank", memory.host));
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
    fmt::format_to(out, "  {:>18}{:>12}  {:<22}{:<28} {}\n", ft::Grouped(arena.live[i].bytes),
                   ft::ShortBytes(arena.live[i].bytes), ft::MemoryClassName(buffer.class_()),
                   buffer.layer().empty() ? "-" : buffer.layer(),
                   buffer.name() + (buffer.persistent() ? ", persistent" : ""));
  }
  uint64_t rest = 0;
  for (size_t i = shown; i < arena.live.size(); ++i) rest += arena.live[i].bytes;
  fmt::format_to(
      out, "  {:>18}{:>12}  these{}\n", ft::Grouped(sum), ft::ShortBytes(sum),
      rest == 0 ? "" : fmt::format("; {} in the other {}", ft::ShortBytes(rest), arena.live.size() - shown));
}

void TrafficRow(Out out, const std::string& name, const ft::Traffic& traffic, size_t width) {
  const auto cell = [](const ft::TransferTraffic& t) {
    return t.count == 0 ? "-" : fmt::format("{} in {}", ft::ShortBytes(t.bytes), t.count);
  };
  fmt::format_to(out, "  {:<{}}{:>20}{:>20}{:>20}{:>14}", name, width, cell(traffic.all_gather),
                 cell(traffic.reduce_scatter), cell(traffic.all_reduce),
                 ft::ShortBytes(traffic.total_bytes()));
  if (traffic.all_to_all.count > 0) fmt::format_to(out, "   all_to_all {}", cell(traffic.all_to_all));
  if (traffic.h2d.count + traffic.d2h.count > 0)
    fmt::format_to(out, "   from host {}, to host {}", cell(traffic.h2d), cell(traffic.d2h));
  fmt::format_to(out, "\n");
}

void TrafficText(Out out, const ft::proto::Plan& plan, const ft::PlanReport& report) {
  const ft::TrafficReport& traffic = report.traffic;
  const std::vector<UnitRun> runs = EqualUnits(plan, traffic);
  size_t width = 26;
  for (const UnitRun& run : runs) width = std::max(width, run.name.size() + 2);
  fmt::format_to(out, "\nSent by each rank in a step{}, and in how many collectives\n",
                 report.micro_steps > 1 ? fmt::format(" of {} micro-steps", report.micro_steps) : "");
  fmt::format_to(out, "  {:<{}}{:>20}{:>20}{:>20}{:>14}\n", "unit", width, "all_gather", "reduce_scatter",
                 "all_reduce", "all");
  for (const UnitRun& run : runs) TrafficRow(out, run.name, traffic.by_unit[run.first], width);
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
    fmt::format_to(out, "  {:<24}{:>24}{:>14}\n", name, ft::Grouped(number), ft::ShortFlops(number));
  };
  row("forward", flops.forward);
  if (flops.recompute > 0) row("recomputation", flops.recompute);
  row("backward", flops.backward);
  row("optimizer", flops.optimizer);
  row("all", flops.total());
  if (flops.recompute > 0) row("without recomputation", flops.total() - flops.recompute);
  row("model FLOPs", flops.model);
}

void StepText(Out out, const Explained& explained) {
  const ft::Target& target = explained.target;
  const StepCost& cost = explained.cost;
  fmt::format_to(out, "\nA step, simulated on {}\n", target.name());
  const auto row = [&](const std::string& name, const std::string& text) {
    fmt::format_to(out, "  {:<24}{:>24}\n", name, text);
  };
  row("time", ft::ShortSeconds(cost.seconds));
  if (cost.seconds_high > 0)
    row("between",
        fmt::format("{} and {}", ft::ShortSeconds(cost.seconds_low), ft::ShortSeconds(cost.seconds_high)));
  row("of it exposed", ft::ShortSeconds(cost.exposed_seconds));
  row(fmt::format("{}/s of each rank", ft::CountedWord(explained.plan)),
      fmt::format("{:.0f}", cost.tokens_per_s));
  if (cost.mfu > 0) row("MFU", fmt::format("{:.1f}%", cost.mfu * 100));
  if (cost.fit != Fit::kUnknown)
    row("arena fits its memory",
        fmt::format("{} ({:.1f}% of {})", Name(cost.fit),
                    static_cast<double>(explained.bound.arena_bytes() + cost.beside.total()) /
                        static_cast<double>(target.memory_bytes()) * 100,
                    ft::ShortBytes(target.memory_bytes())));
  for (const std::string& assumption : ft::AssumptionsOf(explained.plan, explained.bound, target))
    fmt::format_to(out, "  {}\n", assumption);
}

// Of GPUs.
void BesideText(Out out, const Explained& explained) {
  const ft::BesideArena& beside = explained.cost.beside;
  if (beside.total() == 0) {
    fmt::format_to(
        out,
        "\nBeyond the arena: CUDA's context, its libraries and NCCL, of which {} announces nothing; "
        "ftexec says how much\n",
        explained.target.name());
    return;
  }
  fmt::format_to(out, "\nBeyond the arena, as {} announces it\n", explained.target.name());
  Row(out, "context, libraries", beside.context);
  Row(out, "NCCL's buffers", beside.communicators);
  Row(out, "staging, at most", beside.staging);
  Row(out, "with the arena", explained.bound.arena_bytes() + beside.total());
}

void CommunicatorText(Out out, const Explained& explained) {
  if (explained.bound.device_class == ft::DeviceClass::kCuda) {
    return BesideText(out, explained);
  }
  fmt::format_to(out, "\nBeyond the arena, by the way ranks talk\n");
  Row(out, "shared memory (shm)", explained.communicators.shm);
  Row(out, "TCP (gloo)", explained.communicators.gloo);
}

void HostText(Out out, const Explained& explained) {
  fmt::format_to(out, "\nHost memory of a rank beside its arenas\n");
  Row(out, "batch, to read the next", ft::BatchBytes(explained.plan));
  if (!explained.snapshot.has_value()) return;
  fmt::format_to(out, "  to save checkpoints beside training (ftexec --checkpoint-dir)\n");
  Row(out, "snapshot, at most", explained.snapshot->bytes);
  Row(out, "of type local", explained.snapshot->local);
}

void SavedText(Out out, const Explained& explained) {
  const auto& saved = explained.saved;
  if (saved.empty()) return;
  fmt::format_to(out, "\nActivations between forward and backward; seconds on {}\n", explained.target.name());
  fmt::format_to(out, "  {:<10} {:<32}{:>7}{:>14}{:>14}{:>12}{:>14}\n", "choice", "value", "count", "bytes",
                 "FLOPs again", "costs", "frees per s");
  for (const ft::SavedReport& row : saved) {
    const bool kept = row.choice == "keep";
    fmt::format_to(
        out, "  {:<10} {:<32}{:>7}{:>14}{:>14}{:>12}{:>14}\n", row.choice, row.value, row.count,
        ft::ShortBytes(row.bytes), ft::ShortFlops(row.flops), kept ? "-" : ft::ShortSeconds(row.seconds),
        kept || row.seconds == 0 ? "-" : ft::ShortBytes(static_cast<uint64_t>(row.bytes / row.seconds)));
  }
}

}  // namespace

std::string ExplainText(const Explained& explained, int peak) {
  const auto& [name, plan, bound, report, target, step, cost, communicators, snapshot, saved, span] =
      explained;
  std::string text;
  const Out out(text);
  fmt::format_to(out, "{}, strategy {}, {} ranks (replica {} x shard {}), batch {} per rank, device {}\n",
                 plan.model(), plan.strategy(), bound.mesh.world_size(), bound.mesh.replica, bound.mesh.shard,
                 ft::BatchText(plan), ft::Name(bound.device_class));
  fmt::format_to(out, "{} parameters in {} units\n", ft::Grouped(report.parameters), plan.units_size());
  FrozenText(out, plan, report);
  LossText(out, plan);
  Float8Text(out, plan);
  MemoryText(out, report.memory);
  LiveText(out, plan, report.memory.device, "at the peak", peak);
  LiveText(out, plan, report.memory.host, "at the peak of host memory", peak);
  CommunicatorText(out, explained);
  HostText(out, explained);
  TrafficText(out, plan, report);
  FlopsText(out, report.flops);
  StepText(out, explained);
  SavedText(out, explained);
  if (span.has_value()) text += SpanText(*span, target);
  return text;
}

}  // namespace ftc
