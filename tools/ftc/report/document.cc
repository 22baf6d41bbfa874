#include "tools/ftc/report/document.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "runtime/plan/inputs.h"
#include "runtime/plan/report_text.h"
#include "tools/ftc/explain_document.h"
#include "tools/ftc/report/limits.h"
#include "tools/ftc/report/plan_columns.h"
#include "tools/ftc/unit_runs.h"

namespace ftc {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

template <typename Value>
Json OrNull(const std::optional<Value>& value) {
  return value.has_value() ? Json(*value) : Json();
}

std::string DtypeKey(ft::proto::DType dtype) { return absl::AsciiStrToLower(ft::proto::DType_Name(dtype)); }

Json TargetJson(const ft::Target& target) {
  Json rates;
  for (const ft::proto::DType dtype : {ft::proto::F32, ft::proto::BF16, ft::proto::F16}) {
    const ft::Target::Rate& rate = ft::RateOf(target, dtype);
    rates[DtypeKey(dtype)] = {{"peak", rate.peak()}, {"reached", rate.reached()}};
  }
  if (target.has_float8())
    rates["fp8"] = {{"peak", target.float8().peak()}, {"reached", target.float8().reached()}};
  return {{"name", target.name()},
          {"memory_bytes", target.memory_bytes()},
          {"memory_bytes_per_s", target.memory_bytes_per_s()},
          {"rates", std::move(rates)}};
}

Json LimitsJson(const StepLimits& limits) {
  Json parts = {{"arithmetic", limits.arithmetic_seconds}, {"memory", limits.memory_seconds}};
  for (size_t stream = 0; stream < limits.exposed_seconds.size(); ++stream) {
    if (limits.exposed_seconds[stream] > 0)
      parts[StreamKey(static_cast<ft::proto::Stream>(stream))] = limits.exposed_seconds[stream];
  }
  if (limits.launch_seconds > 0) parts["launch"] = limits.launch_seconds;
  if (limits.tail_seconds > 0) parts["tail"] = limits.tail_seconds;
  return {{"seconds", std::move(parts)}, {"largest", limits.Largest()}};
}

Json KernelsJson(const Explained& explained) {
  Json kernels = Json::array();
  for (const KernelGroup& group : KernelGroups(explained.plan, explained.bound, explained.target)) {
    kernels.push_back({{"kernel", group.kernel},
                       {"phase", group.phase},
                       {"layer", group.layer},
                       {"dtype", DtypeKey(group.dtype)},
                       {"bound", group.bound == Bound::kArithmetic ? "arithmetic" : "memory"},
                       {"count", group.count},
                       {"flops", group.flops},
                       {"bytes", group.bytes},
                       {"seconds", group.seconds},
                       {"total_seconds", group.total_seconds}});
  }
  return kernels;
}

Json UnitRunsJson(const Explained& explained) {
  Json runs = Json::array();
  for (const UnitRun& run : EqualUnits(explained.plan, explained.report.traffic))
    runs.push_back({{"name", run.name}, {"first", run.first}, {"units", run.units}});
  return runs;
}

Json ScalingJson(const Scaling& scaling) {
  Json rows = Json::array(), left_out = Json::array();
  for (const ScalingRow& row : scaling.rows) {
    const int ranks = row.mesh.world_size();
    const bool knows_memory = row.cost.fit != Fit::kUnknown;
    const double of_first = scaling.rows[0].cost.tokens_per_s;
    rows.push_back({{"world_size", ranks},
                    {"mesh", ft::MeshText(row.mesh)},
                    {"seconds", row.cost.seconds},
                    {"exposed_seconds", row.cost.exposed_seconds},
                    {"tokens_per_s_per_rank", row.cost.tokens_per_s},
                    {"tokens_per_s", row.cost.tokens_per_s * ranks},
                    {"of_first", of_first > 0 ? Json(row.cost.tokens_per_s / of_first) : Json()},
                    {"mfu", row.cost.mfu > 0 ? Json(row.cost.mfu) : Json()},
                    {"arena_bytes", row.arena_bytes},
                    {"beside_bytes", row.cost.beside.total()},
                    {"fits", knows_memory ? Json(Name(row.cost.fit)) : Json()}});
  }
  for (const LeftOut& one : scaling.left_out)
    left_out.push_back({{"world_size", one.name}, {"why", one.why}});
  return {{"rows", std::move(rows)}, {"left_out", std::move(left_out)}};
}

Json PeakJson(const ft::BoundArena& arena) {
  return {{"program", arena.peak_program}, {"instruction", arena.peak_instruction}};
}

Json PlanJson(const Explained& explained, const std::string& name, const Scaling& scaling) {
  Names names;
  Json buffers = BuffersJson(explained, names), programs = ProgramsJson(explained, names);
  return {{"name", name},
          {"explain", ExplainDocument(explained, ExplainCommand::kUsualPeak)},
          {"fit", Name(explained.cost.fit)},
          {"counted", ft::CountedWord(explained.plan)},
          {"target", TargetJson(explained.target)},
          {"limits", LimitsJson(LimitsOf(explained.plan, explained.bound, explained.target))},
          {"peak", {{"device", PeakJson(explained.bound.device)}, {"host", PeakJson(explained.bound.host)}}},
          {"kernels", KernelsJson(explained)},
          {"unit_runs", UnitRunsJson(explained)},
          {"scaling", ScalingJson(scaling)},
          {"names", names.Take()},
          {"buffers", std::move(buffers)},
          {"programs", std::move(programs)}};
}

// Of the whole run and of its steady step, beside what was predicted for it.
Json RunJson(const RunMetrics& run, const Explained& explained) {
  Json columns;
  for (size_t i = 0; i < run.columns.size(); ++i) {
    Json& column = columns[RunMetrics::kColumns[i]] = Json::array();
    for (const std::optional<double>& value : run.columns[i]) column.push_back(OrNull(value));
  }
  Json losses = Json::array();
  for (const std::optional<double>& loss : run.eval_losses) losses.push_back(OrNull(loss));
  const StepCost& cost = explained.cost;
  const Json predicted = {{"step_ms", cost.seconds * 1e3},
                          {"tokens_per_s", cost.tokens_per_s * explained.bound.mesh.world_size()},
                          {"exposed_ms", cost.exposed_seconds * 1e3}};
  Json measured;
  if (run.steady.has_value())
    measured = {{"steps", run.steady->steps},
                {"step_ms", run.steady->step_ms},
                {"tokens_per_s", run.steady->tokens_per_s},
                {"exposed_ms", OrNull(run.steady->exposed_ms)},
                {"ratio", cost.seconds > 0 ? Json(run.steady->step_ms / 1e3 / cost.seconds) : Json()}};
  return {{"file", run.file},     {"counted", ft::CountedWord(explained.plan)},
          {"lines", run.lines},   {"every", run.every},
          {"others", run.others}, {"step", run.steps},
          {"columns", columns},   {"evaluated", run.evaluated},
          {"eval_loss", losses},  {"predicted", predicted},
          {"measured", measured}};
}

// One run of each instruction: of the rank in the middle, and of the slowest.
Json MeasuredJson(const std::vector<InstructionAgainst>& instructions) {
  Json measured = {{"program", Json::array()},
                   {"instruction", Json::array()},
                   {"median", Json::array()},
                   {"slowest", Json::array()}};
  for (const InstructionAgainst& one : instructions) {
    const auto runs = static_cast<double>(one.runs);
    measured["program"].push_back(one.program);
    measured["instruction"].push_back(one.instruction);
    measured["median"].push_back(one.seconds.median / runs);
    measured["slowest"].push_back(one.seconds.slowest / runs);
  }
  return measured;
}

// Those that differ most first.
Json ClassesJson(std::vector<ClassAgainst> classes) {
  const auto off = [](const ClassAgainst& one) {
    return std::abs(one.seconds.median - one.seconds.predicted);
  };
  std::stable_sort(classes.begin(), classes.end(),
                   [&](const ClassAgainst& a, const ClassAgainst& b) { return off(a) > off(b); });
  Json all = Json::array();
  for (const ClassAgainst& one : classes) {
    const Against& seconds = one.seconds;
    all.push_back({{"title", one.name},
                   {"count", one.runs},
                   {"predicted", seconds.predicted},
                   {"measured", seconds.median},
                   {"slowest", seconds.slowest},
                   {"ratio", seconds.predicted > 0 ? Json(seconds.median / seconds.predicted) : Json()}});
  }
  return all;
}

Json TraceJson(const RunTrace& trace) {
  Json events = {{"program", Json::array()},
                 {"instruction", Json::array()},
                 {"wait", Json::array()},
                 {"begin", Json::array()},
                 {"end", Json::array()}};
  for (const RunTrace::Event& event : trace.events) {
    events["program"].push_back(event.program);
    events["instruction"].push_back(event.instruction);
    events["wait"].push_back(event.wait ? 1 : 0);
    events["begin"].push_back(std::llround(event.begin * 1e9));
    events["end"].push_back(std::llround(event.end * 1e9));
  }
  const Comparison& comparison = trace.comparison;
  const Against& exposed = comparison.exposed;
  return {{"file", trace.file},
          {"emulated_link", trace.link.empty() ? Json() : Json(trace.link)},
          {"ranks", comparison.ranks},
          {"steps", comparison.steps},
          {"left_out", comparison.left_out},
          {"launch_seconds_assumed", comparison.launch_s > 0 ? Json(comparison.launch_s) : Json()},
          {"waited",
           {{"predicted", exposed.predicted}, {"median", exposed.median}, {"slowest", exposed.slowest}}},
          {"unmeasured", comparison.unmeasured},
          {"classes", ClassesJson(comparison.classes)},
          {"measured", MeasuredJson(comparison.instructions)},
          {"events", std::move(events)}};
}

// File names, or strategies; a second one of the same name gets a number.
std::vector<std::string> TitlesOf(const std::vector<Explained>& plans) {
  std::vector<std::string> titles;
  std::map<std::string, int> seen;
  for (const Explained& plan : plans) {
    const std::string name = FileName(plan.name);
    const int before = seen[name]++;
    titles.push_back(before == 0 ? name : fmt::format("{} ({})", name, before + 1));
  }
  return titles;
}

Json MemoryClassesJson() {
  Json classes = Json::array();
  for (int i = 0; i < ft::proto::MemoryClass_ARRAYSIZE; ++i) {
    const auto one = static_cast<ft::proto::MemoryClass>(i);
    classes.push_back({{"key", ft::MemoryClassKey(one)}, {"name", ft::MemoryClassName(one)}});
  }
  return classes;
}

Json StreamsJson() {
  Json streams = Json::array();
  for (int i = 0; i < ft::proto::Stream_ARRAYSIZE; ++i)
    streams.push_back(StreamKey(static_cast<ft::proto::Stream>(i)));
  return streams;
}

}  // namespace

std::string ReportDocument(const ReportInput& input) {
  const std::vector<Explained>& plans = input.explained.plans;
  const std::vector<std::string> titles = TitlesOf(plans);
  Json all = Json::array(), left_out = Json::array();
  for (size_t i = 0; i < plans.size(); ++i) all.push_back(PlanJson(plans[i], titles[i], input.scaling[i]));
  for (const LeftOut& one : input.explained.left_out)
    left_out.push_back({{"name", FileName(one.name)}, {"why", one.why}});
  const Json document = {{"format", kFormat},
                         {"producer", plans[0].plan.producer()},
                         {"classes", MemoryClassesJson()},
                         {"streams", StreamsJson()},
                         {"plans", std::move(all)},
                         {"left_out", std::move(left_out)},
                         {"run", input.run.has_value() ? RunJson(*input.run, plans[0]) : Json()},
                         {"trace", input.trace.has_value() ? TraceJson(*input.trace) : Json()}};
  // Only texts can have a `<`. All that is not ASCII is escaped, the ends of lines of JavaScript too.
  return absl::StrReplaceAll(document.dump(-1, ' ', true, Json::error_handler_t::replace),
                             {{"<", "\\u003c"}});
}

}  // namespace ftc
