#include "tools/ftc/training_span.h"

#include <algorithm>
#include <iterator>

#include "fmt/format.h"
#include "runtime/base/numbers.h"
#include "runtime/cost/kernels.h"
#include "runtime/cost/scale_timed.h"

namespace ftc {
namespace {

constexpr double kMore = 1.1;

void Scale(google::protobuf::RepeatedPtrField<ft::Target::Point>& points) {
  for (ft::Target::Point& point : points) point.set_value(point.value() * kMore);
}

void Scale(ft::Target::Link& link) { link.set_bytes_per_s(link.bytes_per_s() * kMore); }

// Of matrix products and attention.
void MoreProducts(ft::Target& target) {
  for (ft::Target::Rate* rate : {target.mutable_f32(), target.mutable_bf16(), target.mutable_f16()})
    rate->set_reached(rate->reached() * kMore);
  if (target.has_float8()) target.mutable_float8()->set_reached(target.float8().reached() * kMore);
  for (ft::Target::Attention& attention : *target.mutable_attention()) {
    Scale(*attention.mutable_forward());
    Scale(*attention.mutable_backward());
  }
}

void MoreMemory(ft::Target& target) {
  target.set_memory_bytes_per_s(target.memory_bytes_per_s() * kMore);
  Scale(*target.mutable_memory());
}

// Of collectives that were measured, those of one node or of several.
void ScaleCollectives(ft::Target& target, bool between_nodes) {
  for (ft::Target::Collective& collective : *target.mutable_collectives())
    if ((collective.nodes() > 1) == between_nodes) Scale(*collective.mutable_bytes_per_s());
}

void MoreInNode(ft::Target& target) {
  Scale(*target.mutable_node());
  ScaleCollectives(target, /*between_nodes=*/false);
}

void MoreBetweenNodes(ft::Target& target) {
  Scale(*target.mutable_network());
  ScaleCollectives(target, /*between_nodes=*/true);
}

void MoreHost(ft::Target& target) {
  Scale(*target.mutable_copies());
  target.set_host_memory_bytes_per_s(target.host_memory_bytes_per_s() * kMore);
  if (target.stack().launch_s() > 0) target.mutable_stack()->set_launch_s(target.stack().launch_s() / kMore);
}

constexpr std::pair<const char*, void (*)(ft::Target&)> kRates[] = {{"products", MoreProducts},
                                                                    {"memory", MoreMemory},
                                                                    {"links in a node", MoreInNode},
                                                                    {"links between nodes", MoreBetweenNodes},
                                                                    {"host and copies", MoreHost}};

// A copy of what a rank saves into host memory; in one memory it is read and written.
double SaveSeconds(const ft::Target& target, uint64_t bytes) {
  if (target.cuda()) return static_cast<double>(bytes) / target.copies().bytes_per_s();
  return ft::MemorySeconds(target, 2.0 * static_cast<double>(bytes));
}

double EvaluationSeconds(const ft::proto::Plan& plan, const ft::BoundPlan& bound, const ft::Target& target) {
  for (int p = 0; p < plan.programs_size(); ++p)
    if (plan.programs(p).name() == "eval_step")
      return static_cast<double>(kEvaluatedBatches) * ft::SimulateProgram(plan, bound, p, target).seconds;
  return 0;
}

}  // namespace

double TrainingSpan::evaluating_seconds() const {
  return static_cast<double>(steps / kEvaluateEverySteps) * evaluation_seconds;
}

double TrainingSpan::saving_seconds() const {
  return (training_seconds() + evaluating_seconds()) / kSaveEverySeconds * save_seconds;
}

TrainingSpan SpanOf(const ft::proto::Plan& plan, const ft::BoundPlan& bound, const ft::Target& target,
                    const ft::SimulatedProgram& step, uint64_t snapshot_bytes, uint64_t tokens) {
  TrainingSpan span{.tokens = tokens, .ranks = bound.mesh.world_size(), .step_seconds = step.seconds};
  span.tokens_per_step = plan.batch() * plan.seq_len() * std::max<uint64_t>(plan.micro_steps(), 1) *
                         static_cast<uint64_t>(span.ranks);
  span.steps = (tokens + span.tokens_per_step - 1) / span.tokens_per_step;
  span.save_seconds = SaveSeconds(target, snapshot_bytes);
  span.evaluation_seconds = EvaluationSeconds(plan, bound, target);
  for (const auto& [name, more] : kRates) {
    ft::Target faster = target;
    more(faster);
    ft::ScaleTimed(plan, bound.mesh, target, faster);
    span.faster.push_back({name, ft::SimulateStep(plan, bound, faster).seconds});
  }
  return span;
}

std::string LongTime(double seconds) {
  if (seconds >= 2 * 86400) return fmt::format("{:.1f} days", seconds / 86400);
  if (seconds >= 2 * 3600) return fmt::format("{:.1f} hours", seconds / 3600);
  if (seconds >= 120) return fmt::format("{:.1f} minutes", seconds / 60);
  return ft::ShortSeconds(seconds);
}

std::string SpanText(const TrainingSpan& span, const ft::Target& target) {
  std::string text;
  const auto out = std::back_inserter(text);
  const auto row = [&](const char* what, double seconds, const std::string& how) {
    fmt::format_to(out, "  {:<24}{:>24}   {}\n", what, LongTime(seconds), how);
  };
  fmt::format_to(out, "\n{} tokens on {}, {} rank{}\n", ft::Grouped(span.tokens), target.name(), span.ranks,
                 span.ranks == 1 ? "" : "s");
  row("training", span.training_seconds(),
      fmt::format("{} steps of {} tokens", ft::Grouped(span.steps), ft::Grouped(span.tokens_per_step)));
  row("evaluation", span.evaluating_seconds(),
      fmt::format("assumed: {} batches a rank after every {} steps, {} each", kEvaluatedBatches,
                  kEvaluateEverySteps, ft::ShortSeconds(span.evaluation_seconds)));
  row("saving", span.saving_seconds(),
      fmt::format("assumed: every {:.0f} minutes, which stands still for {}", kSaveEverySeconds / 60,
                  ft::ShortSeconds(span.save_seconds)));
  row("together", span.seconds(),
      fmt::format("{:.0f} {}-hours", span.rank_hours(), target.cuda() ? "GPU" : "rank"));
  fmt::format_to(out, "\nWith a tenth more of one rate\n");
  for (const FasterRate& faster : span.faster) {
    const double saved = 1 - faster.step_seconds / span.step_seconds;
    row(faster.rate.c_str(), static_cast<double>(span.steps) * (span.step_seconds - faster.step_seconds),
        fmt::format("saved: {:.1f}% of a step", saved * 100));
  }
  return text;
}

}  // namespace ftc
