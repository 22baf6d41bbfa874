#include "runtime/plan/target_text.h"

#include <iterator>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "fmt/format.h"
#include "runtime/base/printable.h"

namespace ft {
namespace {

using Points = google::protobuf::RepeatedPtrField<Target::Point>;

constexpr double kTera = 1e12, kGiga = 1e9, kMicro = 1e-6, kMebi = 1 << 20;

std::string NumberText(double value) { return fmt::format("{:.9g}", value); }

std::string Quoted(const std::string& text) {
  return fmt::format("\"{}\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}));
}

// "{1: 34, 32: 259}"
std::string CurveText(const Points& points, double at, double value) {
  return fmt::format(
      "{{{}}}", absl::StrJoin(points, ", ", [&](std::string* out, const Target::Point& point) {
        out->append(fmt::format("{}: {}", NumberText(point.at() / at), NumberText(point.value() / value)));
      }));
}

// Keys below sections, which are begun when the first key of theirs is written.
class Yaml {
 public:
  void Section(int depth, std::string name) {
    open_.resize(static_cast<size_t>(depth));
    open_.push_back({std::move(name), false});
  }
  void Key(std::string_view name, std::string_view text) {
    for (size_t depth = 0; depth < open_.size(); ++depth) {
      if (open_[depth].written) continue;
      if (depth == 0) text_ += '\n';
      fmt::format_to(std::back_inserter(text_), "{:{}}{}:\n", "", 2 * depth, open_[depth].name);
      open_[depth].written = true;
    }
    fmt::format_to(std::back_inserter(text_), "{:{}}{}: {}\n", "", 2 * open_.size(), name, text);
  }
  void Figure(std::string_view name, double value, double unit = 1) { Key(name, NumberText(value / unit)); }
  // What is 0 when it is left out.
  void Optional(std::string_view name, double value, double unit = 1) {
    if (value != 0) Figure(name, value, unit);
  }
  void Curve(std::string_view name, const Points& points, double at, double value) {
    if (!points.empty()) Key(name, CurveText(points, at, value));
  }
  std::string Take() { return std::move(text_); }

 private:
  struct Opened {
    std::string name;
    bool written;
  };
  std::vector<Opened> open_;
  std::string text_;
};

void AddHead(const Target& target, const TargetNotes& notes, Yaml& yaml) {
  yaml.Key("version", "1");
  yaml.Key("name", Quoted(target.name()));
  if (!notes.source.empty()) yaml.Key("source", Quoted(notes.source));
  yaml.Key("device", target.cuda() ? "cuda" : "cpu");
  yaml.Figure("ranks_per_node", target.ranks_per_node());
}

void AddMeasured(const Target& target, Yaml& yaml) {
  if (!target.has_measured()) return;
  const Target::Measured& measured = target.measured();
  yaml.Section(0, "measured");
  yaml.Figure("ranks", measured.ranks_on_node());
  yaml.Figure("threads", measured.threads());
  if (!measured.instruction_set().empty()) yaml.Key("instruction_set", Quoted(measured.instruction_set()));
  if (measured.dtypes_size() > 0)
    yaml.Key("dtypes", absl::StrJoin(measured.dtypes(), ",", [](std::string* out, int dtype) {
               out->append(RateName(static_cast<proto::DType>(dtype)));
             }));
  const bool of_kernels_alone = measured.dtypes().empty();
  if (!of_kernels_alone) yaml.Figure("drift", measured.drift());
  yaml.Section(1, "spread");
  if (!of_kernels_alone) {
    yaml.Figure("products", measured.products());
    yaml.Figure("attention", measured.attention());
    yaml.Figure("memory", measured.memory());
    yaml.Figure("collectives", measured.collectives());
    yaml.Figure("copies", measured.copies());
  }
  yaml.Optional("kernels", measured.kernels());
  if (measured.timed_ranks_on_node() == 0) return;
  yaml.Section(1, "timed");
  yaml.Figure("ranks", measured.timed_ranks_on_node());
  yaml.Figure("threads", measured.timed_threads());
  if (!measured.timed_instruction_set().empty())
    yaml.Key("instruction_set", Quoted(measured.timed_instruction_set()));
}

void AddMemory(const Target& target, Yaml& yaml) {
  yaml.Section(0, "memory");
  yaml.Optional("capacity_mib", static_cast<double>(target.memory_bytes()), kMebi);
  yaml.Optional("beside_mib", static_cast<double>(target.beside_bytes()), kMebi);
  yaml.Optional("communicator_mib", static_cast<double>(target.communicator_bytes()), kMebi);
  yaml.Figure("gigabytes_per_s", target.memory_bytes_per_s(), kGiga);
  yaml.Curve("points", target.memory(), kMebi, kGiga);
  yaml.Optional("host_gigabytes_per_s", target.host_memory_bytes_per_s(), kGiga);
}

void AddCompute(const Target& target, Yaml& yaml) {
  yaml.Section(0, "compute");
  yaml.Optional("sustained", target.sustained());
  const std::pair<const char*, const Target::Rate*> rates[] = {
      {"fp32", &target.f32()}, {"bf16", &target.bf16()}, {"fp16", &target.f16()}, {"fp8", &target.float8()}};
  for (const auto& [name, rate] : rates) {
    if (rate == &target.float8() && !target.has_float8()) continue;
    yaml.Section(1, name);
    yaml.Figure("tflops", rate->reached(), kTera);
    yaml.Optional("peak_tflops", rate->peak(), kTera);
  }
  const Target::Products& products = target.products();
  yaml.Section(1, "products");
  if (products.multiprocessors() != 0) {
    yaml.Figure("multiprocessors", products.multiprocessors());
    yaml.Figure("tile_rows", products.tile_rows());
    yaml.Figure("tile_columns", products.tile_columns());
  }
  yaml.Optional("half_k", products.half_k());
  yaml.Optional("half_rows", products.half_rows());
  yaml.Optional("half_columns", products.half_columns());
}

void AddAttention(const Target& target, Yaml& yaml) {
  yaml.Section(0, "attention");
  bool in_fp32 = false;
  for (const Target::Attention& rates : target.attention()) {
    if (rates.f32() && !in_fp32) yaml.Section(1, "fp32");
    in_fp32 = rates.f32();
    yaml.Section(in_fp32 ? 2 : 1, fmt::format("{}", rates.head_size()));
    yaml.Curve("forward", rates.forward(), 1, kTera);
    yaml.Curve("backward", rates.backward(), 1, kTera);
  }
}

void AddKernels(const Target& target, const TargetNotes& notes, Yaml& yaml) {
  yaml.Section(0, "kernels");
  yaml.Figure("latency_us", target.kernel_latency_s(), kMicro);
  yaml.Section(1, "timed");
  for (const Target::TimedKernel& kernel : target.timed_kernels()) {
    std::string text = fmt::format("{{us: {}, spread: {}", NumberText(kernel.seconds() / kMicro),
                                   NumberText(kernel.spread()));
    if (kernel.share() != 1) text += fmt::format(", share: {}", NumberText(kernel.share()));
    text += "}";
    const auto note = notes.kernels.find(kernel.key());
    if (note != notes.kernels.end()) text += "  # " + OneLine(note->second, kLongestKernelNote);
    yaml.Key(fmt::format("\"{:016x}\"", kernel.key()), text);
  }
}

void AddLinks(const Target& target, Yaml& yaml) {
  const auto link = [&](const char* name, const Target::Link& of, const Points& ramp) {
    yaml.Section(1, name);
    yaml.Figure("gigabytes_per_s", of.bytes_per_s(), kGiga);
    yaml.Figure("latency_us", of.latency_s(), kMicro);
    yaml.Optional("step_us", of.step_s(), kMicro);
    yaml.Curve("ramp", ramp, kMebi, 1);
  };
  yaml.Section(0, "links");
  link("node", target.node(), target.node_ramp());
  link("network", target.network(), target.network_ramp());
  yaml.Section(0, "copies");
  yaml.Figure("gigabytes_per_s", target.copies().bytes_per_s(), kGiga);
  yaml.Figure("latency_us", target.copies().latency_s(), kMicro);
}

std::string KindText(proto::Opcode opcode) { return absl::AsciiStrToLower(proto::Opcode_Name(opcode)); }

void AddCollectives(const Target& target, Yaml& yaml) {
  yaml.Section(0, "collectives");
  for (const proto::Opcode opcode : {proto::ALL_GATHER, proto::REDUCE_SCATTER, proto::ALL_REDUCE}) {
    yaml.Section(1, KindText(opcode));
    for (const Target::Collective& measured : target.collectives())
      if (measured.opcode() == opcode)
        yaml.Curve(fmt::format("{}x{}", measured.nodes(), measured.ranks_on_node()), measured.bytes_per_s(),
                   kMebi, kGiga);
  }
  yaml.Section(0, "overlap");
  for (const Target::Overlap& overlap : target.overlaps()) {
    yaml.Section(1, KindText(overlap.opcode()));
    yaml.Figure("kernels", overlap.kernels());
    yaml.Figure("transfer", overlap.transfer());
    yaml.Optional("multiprocessors", overlap.multiprocessors());
  }
}

void AddStack(const Target& target, Yaml& yaml) {
  const Target::Stack& stack = target.stack();
  yaml.Section(0, "stack");
  yaml.Optional("launch_us", stack.launch_s(), kMicro);
  yaml.Optional("launches", stack.launches());
  yaml.Optional("elementwise_bytes", stack.elementwise_bytes());
  yaml.Optional("update_bytes", stack.update_bytes());
  yaml.Optional("logit_bytes", stack.logit_bytes());
  yaml.Optional("reduction_bytes", stack.reduction_bytes());
  yaml.Section(0, "jitter");
  yaml.Curve("points", target.jitter(), 1, 1);
}

}  // namespace

std::string TargetText(const Target& target, const TargetNotes& notes) {
  Yaml yaml;
  AddHead(target, notes, yaml);
  AddMeasured(target, yaml);
  AddMemory(target, yaml);
  AddCompute(target, yaml);
  AddAttention(target, yaml);
  AddKernels(target, notes, yaml);
  AddLinks(target, yaml);
  AddCollectives(target, yaml);
  AddStack(target, yaml);
  return yaml.Take();
}

}  // namespace ft
