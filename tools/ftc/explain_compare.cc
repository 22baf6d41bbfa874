// Plans side by side: a column each.
#include <algorithm>
#include <functional>
#include <iterator>

#include "fmt/format.h"
#include "runtime/base/numbers.h"
#include "runtime/plan/inputs.h"
#include "tools/ftc/explain.h"

namespace ftc {
namespace {

using Cell = std::function<std::string(const Explained&)>;

class Table {
 public:
  explicit Table(const std::vector<Explained>& plans) : plans_(plans) {
    for (const Explained& plan : plans) width_ = std::max(width_, plan.name.size() + 2);
  }

  void Section(const char* title) { fmt::format_to(std::back_inserter(text_), "\n{}\n", title); }

  void Line(const std::string& text) { text_ += "  " + text + "\n"; }

  // A row in which no plan has anything is left out.
  void Row(const char* name, const Cell& cell) {
    std::string line = fmt::format("  {:<28}", name);
    bool empty = true;
    for (const Explained& plan : plans_) {
      const std::string text = cell(plan);
      empty &= text == kNone;
      line += fmt::format("{:>{}}", text, width_);
    }
    if (!empty) text_ += line + "\n";
  }

  void Bytes(const char* name, const std::function<uint64_t(const Explained&)>& bytes) {
    Row(name, [&](const Explained& e) { return bytes(e) == 0 ? kNone : ft::ShortBytes(bytes(e)); });
  }
  void Flops(const char* name, const std::function<uint64_t(const Explained&)>& flops) {
    Row(name, [&](const Explained& e) { return flops(e) == 0 ? kNone : ft::ShortFlops(flops(e)); });
  }

  std::string Take() { return std::move(text_); }

 private:
  static inline const std::string kNone = "-";
  const std::vector<Explained>& plans_;
  size_t width_ = 16;
  std::string text_;
};

constexpr std::pair<const char*, ft::proto::MemoryClass> kClasses[] = {
    {"parameters", ft::proto::PARAMETERS},
    {"gradients", ft::proto::GRADIENTS},
    {"optimizer state", ft::proto::OPTIMIZER_STATE},
    {"activations", ft::proto::ACTIVATIONS},
    {"gathered units", ft::proto::GATHERED},
    {"communication staging", ft::proto::STAGING},
    {"workspace", ft::proto::WORKSPACE},
    {"inputs, outputs", ft::proto::IO},
};
static_assert(std::size(kClasses) == ft::proto::MemoryClass_ARRAYSIZE);

void MemoryRows(Table& table) {
  table.Section("Memory of each rank, at its peak");
  for (const auto& [name, kind] : kClasses)
    table.Bytes(name, [kind = kind](const Explained& e) { return e.report.memory.device.by_class[kind]; });
  table.Bytes("padding", [](const Explained& e) { return e.report.memory.device.padding; });
  table.Bytes("arena", [](const Explained& e) { return e.report.memory.device.arena_bytes; });
  table.Bytes("beside it, announced", [](const Explained& e) { return e.cost.beside.total(); });
  table.Bytes("host arena", [](const Explained& e) { return e.report.memory.host.arena_bytes; });
  table.Section("At rest, of these");
  table.Bytes("parameters", [](const Explained& e) { return e.report.memory.at_rest.parameters; });
  table.Bytes("gradients", [](const Explained& e) { return e.report.memory.at_rest.gradients; });
  table.Bytes("optimizer state", [](const Explained& e) { return e.report.memory.at_rest.optimizer_state; });
  table.Bytes("together", [](const Explained& e) { return e.report.memory.at_rest.total(); });
}

void TrafficRows(Table& table) {
  table.Section("Sent by each rank in a step");
  const auto row = [&](const char* name, const ft::TransferTraffic ft::Traffic::* kind) {
    table.Bytes(name, [kind](const Explained& e) { return (e.report.traffic.total.*kind).bytes; });
  };
  row("all_gather", &ft::Traffic::all_gather);
  row("reduce_scatter", &ft::Traffic::reduce_scatter);
  row("all_reduce", &ft::Traffic::all_reduce);
  row("all_to_all", &ft::Traffic::all_to_all);
  table.Bytes("together", [](const Explained& e) { return e.report.traffic.total.total_bytes(); });
  table.Row("in collectives",
            [](const Explained& e) { return fmt::format("{}", e.report.traffic.total.collectives()); });
  row("copied from host", &ft::Traffic::h2d);
  row("copied to host", &ft::Traffic::d2h);
}

void StepRows(Table& table) {
  table.Section("A step, simulated");
  table.Row("on", [](const Explained& e) { return e.target.name(); });
  table.Row("time", [](const Explained& e) { return ft::ShortSeconds(e.cost.seconds); });
  table.Row("of it exposed", [](const Explained& e) { return ft::ShortSeconds(e.cost.exposed_seconds); });
  table.Row("rate of each rank", [](const Explained& e) {
    return fmt::format("{:.0f} {}/s", e.cost.tokens_per_s, ft::CountedWord(e.plan));
  });
  table.Row("MFU", [](const Explained& e) {
    return e.cost.mfu > 0 ? fmt::format("{:.1f}%", e.cost.mfu * 100) : std::string("-");
  });
  table.Row("arena fits its memory", [](const Explained& e) { return std::string(Name(e.cost.fit)); });
}

void FlopsRows(Table& table) {
  table.Section("FLOPs of each rank in a step");
  table.Flops("forward", [](const Explained& e) { return e.report.flops.forward; });
  table.Flops("recomputation", [](const Explained& e) { return e.report.flops.recompute; });
  table.Flops("backward", [](const Explained& e) { return e.report.flops.backward; });
  table.Flops("optimizer", [](const Explained& e) { return e.report.flops.optimizer; });
  table.Flops("together", [](const Explained& e) { return e.report.flops.total(); });
}

}  // namespace

std::string CompareText(const std::vector<Explained>& plans, const std::vector<LeftOut>& left_out) {
  Table table(plans);
  table.Row("", [](const Explained& e) { return e.name; });
  table.Row("model", [](const Explained& e) { return e.plan.model(); });
  table.Row("strategy", [](const Explained& e) { return e.plan.strategy(); });
  table.Row("ranks, replica x shard", [](const Explained& e) {
    return fmt::format("{} x {}", e.bound.mesh.replica, e.bound.mesh.shard);
  });
  table.Row("batch x tokens per rank",
            [](const Explained& e) { return fmt::format("{} x {}", e.plan.batch(), e.plan.seq_len()); });
  table.Row("micro-steps", [](const Explained& e) { return fmt::format("{}", e.report.micro_steps); });
  StepRows(table);
  MemoryRows(table);
  TrafficRows(table);
  FlopsRows(table);
  if (!left_out.empty()) table.Section("Left out");
  for (const LeftOut& one : left_out) table.Line(fmt::format("{}: {}", one.name, one.why));
  return table.Take();
}

}  // namespace ftc
