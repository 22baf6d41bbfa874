#include <algorithm>
#include <utility>

#include "nlohmann/json.hpp"
#include "runtime/cost/uncertainty.h"
#include "runtime/plan/float8_products.h"
#include "runtime/plan/inputs.h"
#include "runtime/plan/report_text.h"
#include "tools/ftc/explain.h"
#include "tools/ftc/explain_document.h"

namespace ftc {
namespace {

using Json = nlohmann::ordered_json;

Json TransferJson(const ft::TransferTraffic& traffic) {
  return {{"bytes", traffic.bytes}, {"count", traffic.count}, {"buffers", traffic.buffers}};
}

Json TrafficJson(const ft::Traffic& traffic) {
  return {{"all_gather", TransferJson(traffic.all_gather)},
          {"reduce_scatter", TransferJson(traffic.reduce_scatter)},
          {"all_reduce", TransferJson(traffic.all_reduce)},
          {"all_to_all", TransferJson(traffic.all_to_all)},
          {"h2d", TransferJson(traffic.h2d)},
          {"d2h", TransferJson(traffic.d2h)},
          {"total_bytes", traffic.total_bytes()}};
}

Json UnitsJson(const ft::proto::Plan& plan, const ft::TrafficReport& report) {
  Json units = Json::array();
  const auto add = [&](const std::string& name, const ft::Traffic& traffic) {
    Json unit = {{"unit", name}};
    unit.update(TrafficJson(traffic));
    units.push_back(std::move(unit));
  };
  for (int i = 0; i < plan.units_size(); ++i) add(plan.units(i).name(), report.by_unit[i]);
  add("scalars", report.other);
  return units;
}

Json FlopsJson(const ft::FlopsReport& flops) {
  return {{"forward", flops.forward},   {"recompute", flops.recompute},
          {"backward", flops.backward}, {"optimizer", flops.optimizer},
          {"total", flops.total()},     {"without_recomputation", flops.total() - flops.recompute},
          {"model", flops.model}};
}

Json BytesJson(const ft::ArenaReport& arena) {
  Json bytes;
  for (const auto& [key, value] : ft::BytesByKey(arena)) bytes[std::string(key)] = value;
  return bytes;
}

Json LiveJson(const ft::proto::Plan& plan, const ft::ArenaReport& arena, int limit) {
  Json live = Json::array();
  for (size_t i = 0; i < std::min<size_t>(limit, arena.live.size()); ++i) {
    const ft::proto::Buffer& buffer = plan.buffers(arena.live[i].buffer);
    live.push_back({{"name", buffer.name()},
                    {"class", ft::MemoryClassKey(buffer.class_())},
                    {"layer", buffer.layer()},
                    {"bytes", arena.live[i].bytes},
                    {"persistent", buffer.persistent()}});
  }
  return live;
}

Json AtRestJson(const ft::MemoryReport::AtRest& at_rest) {
  return {{"parameters", at_rest.parameters},
          {"gradients", at_rest.gradients},
          {"optimizer_state", at_rest.optimizer_state},
          {"total", at_rest.total()},
          {"of_gradients_accumulated", at_rest.accumulated},
          {"of_optimizer_state_master", at_rest.master},
          {"of_total_host", at_rest.host}};
}

Json ProgramsJson(const ft::PlanReport& report) {
  Json programs = Json::array();
  for (const ft::ProgramReport& program : report.programs) {
    programs.push_back({{"name", program.name},
                        {"runs_per_step", program.runs},
                        {"traffic", TrafficJson(program.traffic.total)},
                        {"flops", FlopsJson(program.flops)}});
  }
  return programs;
}

Json SavedJson(const std::vector<ft::SavedReport>& rows) {
  Json saved = Json::array();
  for (const ft::SavedReport& row : rows) {
    saved.push_back({{"value", row.value},
                     {"choice", row.choice},
                     {"count", row.count},
                     {"bytes", row.bytes},
                     {"flops", row.flops},
                     {"seconds", row.seconds}});
  }
  return saved;
}

Json TrafficReportJson(const ft::proto::Plan& plan, const ft::TrafficReport& report) {
  Json traffic = TrafficJson(report.total);
  traffic["by_axis"] = Json::array();
  for (const auto& [name, axis] :
       {std::pair("shard", ft::proto::AXIS_SHARD), std::pair("replica", ft::proto::AXIS_REPLICA),
        std::pair("world", ft::proto::AXIS_WORLD)}) {
    Json one = {{"axis", name}};
    one.update(TrafficJson(report.by_axis[axis]));
    traffic["by_axis"].push_back(std::move(one));
  }
  traffic["by_unit"] = UnitsJson(plan, report);
  return traffic;
}

// Null where nothing is announced.
Json BesideJson(const ft::BesideArena& beside) {
  if (beside.total() == 0) return nullptr;
  return {{"context", beside.context},
          {"communicators", beside.communicators},
          {"staging", beside.staging},
          {"total", beside.total()}};
}

// Of computation, by what it is for.
Json PhasesJson(const ft::SimulatedProgram& step) {
  Json phases = Json::object();
  for (const char* phase : {"forward", "recompute", "backward", "optimizer"}) {
    const auto found = step.phase_seconds.find(phase);
    phases[phase] = found == step.phase_seconds.end() ? 0.0 : found->second;
  }
  return phases;
}

// What holds kernels up, and what computation waits for.
Json SourcesJson(const ft::StepSources& sources) {
  return {{"timed", sources.timed},   {"products", sources.products},       {"attention", sources.attention},
          {"memory", sources.memory}, {"collectives", sources.collectives}, {"copies", sources.copies}};
}

// What the target does not tell is null.
Json StepJson(const StepCost& cost, const ft::SimulatedProgram& step, const ft::StepSources& sources,
              const ft::Target& target) {
  const bool knows_memory = cost.fit != Fit::kUnknown;
  const bool has_interval = cost.seconds_high > 0;
  return {{"seconds", cost.seconds},
          {"seconds_low", has_interval ? Json(cost.seconds_low) : Json()},
          {"seconds_high", has_interval ? Json(cost.seconds_high) : Json()},
          {"exposed_seconds", cost.exposed_seconds},
          {"slowed_seconds", step.slowed_seconds},
          {"launch_seconds", step.launch_seconds},
          {"phase_seconds", PhasesJson(step)},
          {"sources", SourcesJson(sources)},
          {"tokens_per_s_per_rank", cost.tokens_per_s},
          {"mfu", cost.mfu > 0 ? Json(cost.mfu) : Json()},
          {"fits", knows_memory ? Json(cost.fit != Fit::kNo) : Json()},
          {"memory_bytes", knows_memory ? Json(target.memory_bytes()) : Json()}};
}

// What the loss is a mean over.
Json LossJson(const ft::proto::Plan& plan) {
  const ft::proto::Input* counted = ft::CountedInput(plan);
  if (counted == nullptr) return {{"mean_over", "ranks and micro-steps"}};
  return {{"mean_over", "counted targets"}, {"input", counted->name()}};
}

Json LoraJson(const ft::proto::Plan& plan) {
  if (!plan.has_lora()) return {};
  const ft::proto::Lora& lora = plan.lora();
  return {{"r", lora.rank()},        {"alpha", lora.alpha()},          {"dropout", lora.dropout()},
          {"rslora", lora.rslora()}, {"modules", lora.modules_size()}, {"trained_whole", Json(lora.saved())}};
}

Json SpanJson(const TrainingSpan& span) {
  Json faster = Json::object();
  for (const FasterRate& one : span.faster) faster[one.rate] = one.step_seconds;
  return {{"tokens", span.tokens},
          {"tokens_per_step", span.tokens_per_step},
          {"steps", span.steps},
          {"seconds", span.seconds()},
          {"training_seconds", span.training_seconds()},
          {"evaluation_seconds", span.evaluating_seconds()},
          {"saving_seconds", span.saving_seconds()},
          {"rank_hours", span.rank_hours()},
          {"step_seconds_with_a_tenth_more", std::move(faster)}};
}

// Null where no product is in fp8.
Json Float8Json(const ft::proto::Plan& plan) {
  const ft::Float8Products float8 = ft::Float8ProductsOf(plan);
  if (float8.rounded == 0) return Json();
  return {{"recipe", float8.recipe}, {"products", float8.rounded}, {"of", float8.products}};
}

}  // namespace

Json ExplainDocument(const Explained& explained, int peak) {
  const auto& [name, plan, bound, report, target, step, cost, communicators, snapshot, saved, span] =
      explained;
  const ft::ArenaReport &device = report.memory.device, &host = report.memory.host;
  return {
      {"model", plan.model()},
      {"strategy", plan.strategy()},
      {"batch", plan.batch()},
      {"seq_len", plan.seq_len()},
      {"micro_steps", report.micro_steps},
      {"loss", LossJson(plan)},
      {"world_size", bound.mesh.world_size()},
      {"mesh", {{"replica", bound.mesh.replica}, {"shard", bound.mesh.shard}}},
      {"device", ft::Name(bound.device_class)},
      {"parameters", report.parameters},
      {"frozen", {{"parameters", report.frozen}, {"bytes_each", report.frozen_bytes_each}}},
      {"lora", LoraJson(plan)},
      {"fp8", Float8Json(plan)},
      {"arena_bytes", device.arena_bytes},
      {"host_arena_bytes", host.arena_bytes},
      {"batch_bytes", ft::BatchBytes(plan)},
      {"snapshot_bytes", snapshot.has_value() ? Json(snapshot->bytes) : Json()},
      {"snapshot_bytes_local", snapshot.has_value() ? Json(snapshot->local) : Json()},
      {"max_live_bytes", device.max_live_bytes},
      {"bytes", BytesJson(device)},
      {"peak", device.peak},
      {"live_at_peak", LiveJson(plan, device, peak)},
      {"host",
       {{"max_live_bytes", host.max_live_bytes},
        {"bytes", BytesJson(host)},
        {"peak", host.peak},
        {"live_at_peak", LiveJson(plan, host, peak)}}},
      {"beside_arena_bytes", BesideJson(cost.beside)},
      {"communicator_bytes", {{"shm", communicators.shm}, {"gloo", communicators.gloo}}},
      {"at_rest", AtRestJson(report.memory.at_rest)},
      {"traffic", TrafficReportJson(plan, report.traffic)},
      {"flops", FlopsJson(report.flops)},
      {"programs", ProgramsJson(report)},
      {"target", target.name()},
      {"step", StepJson(cost, step, ft::SourcesOf(plan, bound, target, step), target)},
      {"assumptions", ft::AssumptionsOf(plan, bound, target)},
      {"tokens", span.has_value() ? SpanJson(*span) : Json()},
      {"saved", SavedJson(saved)},
  };
}

std::string ExplainJson(const Explained& explained, int peak) {
  return ExplainDocument(explained, peak).dump(2, ' ', true) + "\n";
}

std::string CompareJson(const std::vector<Explained>& plans, const std::vector<LeftOut>& left_out, int peak) {
  Json all = Json::array(), others = Json::array();
  for (const Explained& explained : plans) {
    Json one = {{"name", explained.name}};
    one.update(ExplainDocument(explained, peak));
    all.push_back(std::move(one));
  }
  for (const LeftOut& one : left_out) others.push_back({{"name", one.name}, {"why", one.why}});
  return Json{{"plans", std::move(all)}, {"left_out", std::move(others)}}.dump(2, ' ', true) + "\n";
}

}  // namespace ftc
