#include "tools/ftc/report/run_metrics.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "runtime/base/printable.h"
#include "runtime/base/regular_file.h"
#include "runtime/base/status_macros.h"
#include "tools/ftc/median.h"

namespace ftc {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostRows = 4000;
constexpr int64_t kWarmUp = 5;  // steps
constexpr double kMostNumber = 1e300;
constexpr double kMostMilliseconds = 1e12;  // of a step: thirty years
constexpr std::string_view kNeverNegative[] = {"tokens_per_s",  "step_ms",    "arena_bytes",
                                               "samples_per_s", "exposed_ms", "mfu"};

class Reader {
 public:
  Reader(const std::string& path, const Explained& explained) : path_(path), explained_(explained) {
    metrics_.file = FileName(path);
  }

  absl::Status Line(std::string_view text) {
    ++line_;
    const Json row = Json::parse(text, nullptr, false);
    if (!row.is_object()) return Error("no line of metrics: not a JSON object");
    const auto step = row.find("step");
    if (step == row.end() || !step->is_number_integer()) return Error("no line of metrics: it has no 'step'");
    if (step->get<int64_t>() < 0)
      return Error(fmt::format("no line of metrics: its step is {}", step->dump()));
    if (step->get<int64_t>() < last_)
      return Error(fmt::format("step {} comes after step {}: not the metrics of one run",
                               step->get<int64_t>(), last_));
    last_ = step->get<int64_t>();
    if (row.contains("sample")) return absl::OkStatus();  // text that the model made: no curve
    if (row.contains("eval_loss")) return Evaluation(row);
    return Step(row);
  }

  absl::StatusOr<RunMetrics> Take() {
    if (metrics_.steps.empty() && metrics_.evaluated.empty())
      return absl::InvalidArgumentError(fmt::format("{}: has no metrics", ft::OneLine(path_)));
    metrics_.others = std::count(of_plan_.begin(), of_plan_.end(), false);
    if (!of_plan_.empty() && metrics_.others == static_cast<int64_t>(of_plan_.size())) return of_another_;
    metrics_.lines = static_cast<int64_t>(metrics_.steps.size());
    Steady();
    Thin();
    return std::move(metrics_);
  }

 private:
  absl::Status Error(const std::string& what) const {
    return absl::InvalidArgumentError(fmt::format("{}:{}: {}", ft::OneLine(path_), line_, what));
  }

  // Nothing for null: JSON has no NaN.
  absl::StatusOr<std::optional<double>> Number(const Json& row, std::string_view name) const {
    const auto found = row.find(name);
    if (found == row.end() || found->is_null()) return std::nullopt;
    if (!found->is_number()) return Error(fmt::format("'{}' is no number", name));
    const auto value = found->get<double>();
    if (!(std::abs(value) <= kMostNumber)) return std::nullopt;
    return value;
  }

  absl::Status Evaluation(const Json& row) {
    FT_ASSIGN_OR_RETURN(const std::optional<double> loss, Number(row, "eval_loss"));
    metrics_.evaluated.push_back(last_);
    metrics_.eval_losses.push_back(loss);
    return absl::OkStatus();
  }

  absl::Status Step(const Json& row) {
    if (!metrics_.steps.empty() && metrics_.steps.back() == last_)
      return Error(fmt::format("step {} is there twice", last_));
    for (const char* name : {"loss", "tokens_per_s", "step_ms", "arena_bytes", "samples_per_s"}) {
      if (!row.contains(name)) return Error(fmt::format("no line of metrics: it has no '{}'", name));
    }
    FT_RETURN_IF_ERROR(CheckRanges(row));
    metrics_.steps.push_back(last_);
    for (size_t i = 0; i < metrics_.columns.size(); ++i) {
      FT_ASSIGN_OR_RETURN(const std::optional<double> value, Number(row, RunMetrics::kColumns[i]));
      metrics_.columns[i].push_back(value);
    }
    const absl::Status is_of_plan = IsOfPlan(row);
    of_plan_.push_back(is_of_plan.ok());
    if (of_another_.ok()) of_another_ = is_of_plan;
    return absl::OkStatus();
  }

  absl::Status CheckRanges(const Json& row) const {
    for (const std::string_view name : kNeverNegative) {
      FT_ASSIGN_OR_RETURN(const std::optional<double> value, Number(row, name));
      if (value.value_or(0) < 0)
        return Error(fmt::format("no line of metrics: '{}' is {:g}, less than 0", name, *value));
    }
    FT_ASSIGN_OR_RETURN(const std::optional<double> milliseconds, Number(row, "step_ms"));
    if (milliseconds.value_or(0) > kMostMilliseconds)
      return Error(fmt::format("no line of metrics: no step takes {:g} ms", *milliseconds));
    if (row["arena_bytes"].is_null()) return Error("no line of metrics: 'arena_bytes' is no number");
    return absl::OkStatus();
  }

  // The ranks follow from what they did together; the arena is known to the byte.
  absl::Status IsOfPlan(const Json& row) const {
    FT_ASSIGN_OR_RETURN(const std::optional<double> milliseconds, Number(row, "step_ms"));
    FT_ASSIGN_OR_RETURN(const std::optional<double> samples, Number(row, "samples_per_s"));
    FT_ASSIGN_OR_RETURN(const std::optional<double> arena, Number(row, "arena_bytes"));
    const ft::BoundPlan& bound = explained_.bound;
    const double of_rank = static_cast<double>(explained_.plan.batch()) *
                           static_cast<double>(std::max(1u, explained_.plan.micro_steps()));
    if (samples.has_value() && milliseconds.has_value()) {
      const double ranks = *samples * *milliseconds / 1e3 / of_rank;
      const double whole = std::round(ranks);
      if (std::abs(ranks - whole) > 1e-3 || whole < 1)
        return Error(
            fmt::format("metrics of another plan: {:g} sequences in a step, of which a rank of this "
                        "one takes {:g}",
                        ranks * of_rank, of_rank));
      if (whole != bound.mesh.world_size())
        return Error(
            fmt::format("metrics of {0:g} ranks, or of another plan, but the report is for {1}: "
                        "--world-size={0:g}",
                        whole, bound.mesh.world_size()));
    }
    if (arena.has_value() && *arena != static_cast<double>(bound.arena_bytes()))
      return Error(
          fmt::format("metrics of another plan, mesh or device: its arena has {:.0f} bytes, this "
                      "one's {} with {} on {}",
                      *arena, bound.arena_bytes(), ft::MeshText(bound.mesh), ft::Name(bound.device_class)));
    return absl::OkStatus();
  }

  const std::vector<std::optional<double>>& Column(std::string_view name) const {
    const auto found = std::find(RunMetrics::kColumns.begin(), RunMetrics::kColumns.end(), name);
    return metrics_.columns[static_cast<size_t>(found - RunMetrics::kColumns.begin())];
  }

  // Steps of the plan, but for the first that follow each other: a run that another one is resumed by settles
  // anew.
  std::vector<size_t> SteadySteps() const {
    std::vector<size_t> steady;
    int64_t settled = 0;
    for (size_t i = 0; i < of_plan_.size(); ++i) {
      settled = of_plan_[i] ? settled + 1 : 0;
      if (settled > kWarmUp) steady.push_back(i);
    }
    return steady;
  }

  std::optional<double> SteadyMedian(std::string_view name) const {
    std::vector<double> values;
    for (const size_t i : SteadySteps()) {
      if (const std::optional<double> value = Column(name)[i]; value.has_value()) values.push_back(*value);
    }
    if (values.empty()) return std::nullopt;
    return Median(std::move(values));
  }

  void Steady() {
    const std::optional<double> step = SteadyMedian("step_ms"), tokens = SteadyMedian("tokens_per_s");
    if (!step.has_value() || !tokens.has_value()) return;
    metrics_.steady = {.steps = static_cast<int64_t>(SteadySteps().size()),
                       .step_ms = *step,
                       .tokens_per_s = *tokens,
                       .exposed_ms = SteadyMedian("exposed_ms")};
  }

  void Thin() {
    const size_t every = (metrics_.steps.size() + kMostRows - 1) / kMostRows;
    if (every <= 1) return;
    metrics_.every = static_cast<int64_t>(every);
    const auto thin = [&](auto& values) {
      size_t kept = 0;
      for (size_t i = 0; i < values.size(); i += every) values[kept++] = values[i];
      values.resize(kept);
    };
    thin(metrics_.steps);
    for (auto& column : metrics_.columns) thin(column);
  }

  const std::string& path_;
  const Explained& explained_;
  int64_t line_ = 0, last_ = -1;
  std::vector<bool> of_plan_;  // each step
  absl::Status of_another_;    // why the first step is not that is none of the plan
  RunMetrics metrics_;
};

}  // namespace

std::string FileName(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

absl::StatusOr<RunMetrics> ReadRunMetrics(const std::string& path, const Explained& explained) {
  FT_ASSIGN_OR_RETURN(const std::string file, ft::ReadText(path, "file of metrics", kMaxRunBytes));
  std::string_view text = file;
  Reader reader(path, explained);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    FT_RETURN_IF_ERROR(reader.Line(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.Take();
}

}  // namespace ftc
