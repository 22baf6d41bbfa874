#include "tools/ftc/config/target_figures.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "tools/ftc/config/figure_readers.h"
#include "tools/ftc/config/measured_figures.h"

namespace ftc {
namespace {

using ft::Target;
using namespace figure;
using Points = google::protobuf::RepeatedPtrField<Target::Point>;

std::string SetVersion(const Names&, const std::string& text, Target&) {
  if (text == "1") return "";
  return fmt::format("'{}' is not 1, the one version of these files that there is", text);
}

std::string SetDevice(const Names&, const std::string& text, Target& target) {
  if (text != "cpu" && text != "cuda") return fmt::format("'{}' is neither cpu nor cuda", text);
  target.set_cuda(text == "cuda");
  return "";
}

std::string SetName(const Names&, const std::string& text, Target& target) {
  target.set_name(text);
  if (text.empty() || text.size() > ft::kLongestTargetName)
    return fmt::format("wants 1 to {} bytes, not {}", ft::kLongestTargetName, text.size());
  return CheckPrinted(text);
}

// Kept in order, whatever that of the file.
void AddPoint(double at, double value, Points& points) {
  Target::Point* point = points.Add();
  point->set_at(at);
  point->set_value(value);
  for (int i = points.size() - 1; i > 0 && points[i].at() < points[i - 1].at(); --i)
    points.SwapElements(i, i - 1);
}

struct Axis {
  double unit;
  Bounds bounds;
};

// A point of a curve: the last name says where, `curve(names, target)` which, or nullptr with `mistake` set.
template <typename FindCurve>
Figure Curve(std::string key, Axis at, Axis value, FindCurve curve) {
  return {std::move(key), Figure::Needed::kNo,
          [=](const Names& names, const std::string& text, Target& target) -> std::string {
            double where = 0, what = 0;
            if (const std::string mistake = ReadFigure(names.back(), at.bounds, where); !mistake.empty())
              return "the key " + mistake;
            if (std::string mistake = ReadFigure(text, value.bounds, what); !mistake.empty()) return mistake;
            std::string mistake;
            if (Points* points = curve(names, target, mistake))
              AddPoint(where * at.unit, what * value.unit, *points);
            return mistake;
          }};
}

template <typename Field>
Figure PlainCurve(std::string key, Axis at, Axis value, Field field) {
  return Curve(std::move(key), at, value,
               [=](const Names&, Target& target, std::string&) { return field(target); });
}

bool IsBefore(const Target::Attention& rates, bool f32, uint32_t head_size) {
  return rates.f32() == f32 ? rates.head_size() < head_size : f32;
}

Points* AttentionCurve(bool f32, bool is_backward, const Names& names, Target& target, std::string& mistake) {
  double size = 0;
  mistake = ReadFigure(names[0], kExtent, size);
  const auto head_size = static_cast<uint32_t>(size);
  if (mistake.empty()) mistake = CheckSpelling(names[0], fmt::format("{}", head_size));
  if (!mistake.empty()) return nullptr;
  int at = 0;
  while (at < target.attention_size() && IsBefore(target.attention(at), f32, head_size)) ++at;
  if (at == target.attention_size() || target.attention(at).head_size() != head_size ||
      target.attention(at).f32() != f32) {
    Target::Attention* added = target.add_attention();
    added->set_head_size(head_size);
    added->set_f32(f32);
    for (int i = target.attention_size() - 1; i > at; --i) target.mutable_attention()->SwapElements(i, i - 1);
  }
  Target::Attention* rates = target.mutable_attention(at);
  return is_backward ? rates->mutable_backward() : rates->mutable_forward();
}

// "2x8": nodes, and ranks of the group on each.
Points* CollectiveCurve(ft::proto::Opcode opcode, const Names& names, Target& target, std::string& mistake) {
  const std::string& group = names[0];
  const size_t cross = group.find('x');
  double nodes = 0, ranks = 0;
  if (cross == group.npos || !ReadFigure(group.substr(0, cross), kExtent, nodes).empty() ||
      !ReadFigure(group.substr(cross + 1), kCount, ranks).empty()) {
    mistake = fmt::format("'{}' is no group such as 1x8 (nodes x ranks on each)", group);
    return nullptr;
  }
  mistake =
      CheckSpelling(group, fmt::format("{}x{}", static_cast<uint32_t>(nodes), static_cast<uint32_t>(ranks)));
  if (!mistake.empty()) return nullptr;
  for (Target::Collective& known : *target.mutable_collectives()) {
    if (known.opcode() == opcode && known.nodes() == static_cast<uint32_t>(nodes) &&
        known.ranks_on_node() == static_cast<uint32_t>(ranks))
      return known.mutable_bytes_per_s();
  }
  Target::Collective* measured = target.add_collectives();
  measured->set_opcode(opcode);
  measured->set_nodes(static_cast<uint32_t>(nodes));
  measured->set_ranks_on_node(static_cast<uint32_t>(ranks));
  return measured->mutable_bytes_per_s();
}

Target::Overlap* OverlapOf(Target& target, ft::proto::Opcode opcode) {
  for (Target::Overlap& known : *target.mutable_overlaps())
    if (known.opcode() == opcode) return &known;
  Target::Overlap* overlap = target.add_overlaps();
  overlap->set_opcode(opcode);
  return overlap;
}

void AddRates(const std::string& name, Figure::Needed needed, Target::Rate* (Target::*rate)(),
              std::vector<Figure>& figures) {
  figures.push_back(Scaled("compute." + name + ".tflops", needed, kTera, kFlops,
                           [=](Target& t, double x) { (t.*rate)()->set_reached(x); }));
  figures.push_back(Scaled("compute." + name + ".peak_tflops", Figure::Needed::kNo, kTera, kFlops,
                           [=](Target& t, double x) { (t.*rate)()->set_peak(x); }));
  figures.push_back(Text("compute." + name + ".source"));
}

void AddLink(const std::string& section, Target::Link* (Target::*link)(), std::vector<Figure>& figures) {
  figures.push_back(Scaled(section + ".gigabytes_per_s", Figure::Needed::kYes, kGiga, kRate,
                           [=](Target& t, double x) { (t.*link)()->set_bytes_per_s(x); }));
  figures.push_back(Scaled(section + ".latency_us", Figure::Needed::kYes, kMicro, kLatency,
                           [=](Target& t, double x) { (t.*link)()->set_latency_s(x); }));
  figures.push_back(Text(section + ".source"));
}

// A link over which collectives go.
void AddRankLink(const std::string& section, Target::Link* (Target::*link)(), Points* (Target::*ramp)(),
                 std::vector<Figure>& figures) {
  AddLink(section, link, figures);
  figures.push_back(Scaled(section + ".step_us", Figure::Needed::kNo, kMicro, kLatency,
                           [=](Target& t, double x) { (t.*link)()->set_step_s(x); }));
  figures.push_back(PlainCurve(section + ".ramp.*", {kMebi, kMebibytes}, {1, kPart},
                               [=](Target& t) { return (t.*ramp)(); }));
}

void AddMemory(std::vector<Figure>& figures) {
  const auto no = Figure::Needed::kNo;
  figures.push_back(Scaled("memory.capacity_mib", no, kMebi, kMemory,
                           [](Target& t, double x) { t.set_memory_bytes(static_cast<uint64_t>(x)); }));
  figures.push_back(Scaled("memory.gigabytes_per_s", Figure::Needed::kYes, kGiga, kRate,
                           [](Target& t, double x) { t.set_memory_bytes_per_s(x); }));
  figures.push_back(PlainCurve("memory.points.*", {kMebi, kMebibytes}, {kGiga, kRate},
                               [](Target& t) { return t.mutable_memory(); }));
  figures.push_back(Scaled("memory.host_gigabytes_per_s", no, kGiga, kRate,
                           [](Target& t, double x) { t.set_host_memory_bytes_per_s(x); }));
  figures.push_back(Scaled("memory.beside_mib", no, kMebi, kBeside,
                           [](Target& t, double x) { t.set_beside_bytes(static_cast<uint64_t>(x)); }));
  figures.push_back(Scaled("memory.communicator_mib", no, kMebi, kBeside,
                           [](Target& t, double x) { t.set_communicator_bytes(static_cast<uint64_t>(x)); }));
  figures.push_back(Text("memory.source"));
}

void AddProducts(std::vector<Figure>& figures) {
  const auto no = Figure::Needed::kNo;
  const auto whole = [&](const char* key, const Bounds& bounds, void (Target::Products::*set)(uint32_t)) {
    figures.push_back(Scaled(std::string("compute.products.") + key, no, 1, bounds, [=](Target& t, double x) {
      (t.mutable_products()->*set)(static_cast<uint32_t>(x));
    }));
  };
  whole("multiprocessors", kNone, &Target::Products::set_multiprocessors);
  whole("tile_rows", kExtent, &Target::Products::set_tile_rows);
  whole("tile_columns", kExtent, &Target::Products::set_tile_columns);
  const std::pair<const char*, void (Target::Products::*)(double)> halves[] = {
      {"half_k", &Target::Products::set_half_k},
      {"half_rows", &Target::Products::set_half_rows},
      {"half_columns", &Target::Products::set_half_columns}};
  for (const auto& [name, set_half] : halves) {
    const auto set = set_half;
    figures.push_back(Scaled(fmt::format("compute.products.{}", name), no, 1, {.low = 0, .high = 1e6},
                             [=](Target& t, double x) { (t.mutable_products()->*set)(x); }));
  }
  figures.push_back(Text("compute.products.source"));
  figures.push_back(
      Scaled("compute.sustained", no, 1, kPart, [](Target& t, double x) { t.set_sustained(x); }));
  figures.push_back(Text("compute.source"));
}

void AddAttention(std::vector<Figure>& figures) {
  figures.push_back(Text("attention.source"));
  for (const bool f32 : {true, false}) {
    for (const bool is_backward : {false, true}) {
      figures.push_back(
          Curve(fmt::format("attention.{}*.{}.*", f32 ? "fp32." : "", is_backward ? "backward" : "forward"),
                {1, {.low = 1, .high = 1e9}}, {kTera, kFlops},
                [=](const Names& names, Target& t, std::string& mistake) {
                  return AttentionCurve(f32, is_backward, names, t, mistake);
                }));
    }
  }
}

struct KindName {
  const char* name;
  ft::proto::Opcode opcode;
};
constexpr KindName kKinds[] = {{"all_gather", ft::proto::ALL_GATHER},
                               {"reduce_scatter", ft::proto::REDUCE_SCATTER},
                               {"all_reduce", ft::proto::ALL_REDUCE},
                               {"copy", ft::proto::COPY}};

void AddCollectives(std::vector<Figure>& figures) {
  const auto no = Figure::Needed::kNo;
  figures.push_back(Text("collectives.source"));
  figures.push_back(Text("overlap.source"));
  for (const auto& [name, opcode_of_kind] : kKinds) {
    const ft::proto::Opcode opcode = opcode_of_kind;
    if (opcode != ft::proto::COPY)
      figures.push_back(Curve(fmt::format("collectives.{}.*.*", name), {kMebi, kMebibytes}, {kGiga, kRate},
                              [=](const Names& names, Target& t, std::string& mistake) {
                                return CollectiveCurve(opcode, names, t, mistake);
                              }));
    const std::string section = fmt::format("overlap.{}.", name);
    figures.push_back(Scaled(section + "kernels", no, 1, kLonger,
                             [=](Target& t, double x) { OverlapOf(t, opcode)->set_kernels(x); }));
    figures.push_back(Scaled(section + "transfer", no, 1, kLonger,
                             [=](Target& t, double x) { OverlapOf(t, opcode)->set_transfer(x); }));
    figures.push_back(Scaled(section + "multiprocessors", no, 1, kNone, [=](Target& t, double x) {
      OverlapOf(t, opcode)->set_multiprocessors(static_cast<uint32_t>(x));
    }));
  }
}

void AddStack(std::vector<Figure>& figures) {
  const auto add = [&](const char* key, double unit, const Bounds& bounds,
                       void (Target::Stack::*set)(double)) {
    figures.push_back(Scaled(std::string("stack.") + key, Figure::Needed::kNo, unit, bounds,
                             [=](Target& t, double x) { (t.mutable_stack()->*set)(x); }));
  };
  add("launch_us", kMicro, kLatency, &Target::Stack::set_launch_s);
  add("launches", 1, kTimes, &Target::Stack::set_launches);
  add("elementwise_bytes", 1, kTimes, &Target::Stack::set_elementwise_bytes);
  add("update_bytes", 1, kTimes, &Target::Stack::set_update_bytes);
  add("logit_bytes", 1, kTimes, &Target::Stack::set_logit_bytes);
  add("reduction_bytes", 1, kTimes, &Target::Stack::set_reduction_bytes);
  figures.push_back(Text("stack.source"));
  figures.push_back(PlainCurve("jitter.points.*", {1, {.low = 1, .high = 1e9, .whole = true}}, {1, kLonger},
                               [](Target& t) { return t.mutable_jitter(); }));
  figures.push_back(Text("jitter.source"));
  figures.push_back(Text("assumptions.*"));
}

std::vector<Figure> MakeFigures() {
  std::vector<Figure> figures = {
      {"version", Figure::Needed::kYes, SetVersion},
      {"name", Figure::Needed::kNo, SetName},
      Text("source"),
      {"device", Figure::Needed::kYes, SetDevice},
      Scaled("ranks_per_node", Figure::Needed::kYes, 1, kCount,
             [](Target& t, double x) { t.set_ranks_per_node(static_cast<uint32_t>(x)); }),
  };
  AddMemory(figures);
  AddRates("fp32", Figure::Needed::kYes, &Target::mutable_f32, figures);
  AddRates("bf16", Figure::Needed::kYes, &Target::mutable_bf16, figures);
  AddRates("fp16", Figure::Needed::kYes, &Target::mutable_f16, figures);
  AddRates("fp8", Figure::Needed::kNo, &Target::mutable_float8, figures);
  AddProducts(figures);
  AddAttention(figures);
  figures.push_back(Scaled("kernels.latency_us", Figure::Needed::kYes, kMicro, kLatency,
                           [](Target& t, double x) { t.set_kernel_latency_s(x); }));
  figures.push_back(Text("kernels.source"));
  AddRankLink("links.node", &Target::mutable_node, &Target::mutable_node_ramp, figures);
  AddRankLink("links.network", &Target::mutable_network, &Target::mutable_network_ramp, figures);
  AddLink("copies", &Target::mutable_copies, figures);
  AddCollectives(figures);
  AddStack(figures);
  AddMeasured(figures);
  return figures;
}

// The names in `key` that stand for the * of `pattern`. Only one that ends a leaf may have dots ("0.5").
std::optional<Names> NamesIn(std::string_view pattern, std::string_view key, bool is_leaf) {
  Names names;
  for (;;) {
    const size_t star = pattern.find('*');
    if (star == pattern.npos) return key == pattern ? std::optional<Names>(std::move(names)) : std::nullopt;
    if (key.substr(0, star) != pattern.substr(0, star)) return std::nullopt;
    key.remove_prefix(star);
    pattern.remove_prefix(star + 1);
    const size_t end = pattern.empty() && is_leaf ? key.size() : std::min(key.find('.'), key.size());
    if (end == 0) return std::nullopt;
    names.emplace_back(key.substr(0, end));
    key.remove_prefix(end);
  }
}

}  // namespace

const std::vector<Figure>& Figures() {
  static const auto* const kFigures = new std::vector<Figure>(MakeFigures());
  return *kFigures;
}

FoundFigure FindFigure(std::string_view key) {
  for (const Figure& figure : Figures()) {
    if (figure.key == key) return {&figure, {}};
  }
  for (const Figure& figure : Figures()) {
    if (figure.key.find('*') == figure.key.npos) continue;
    if (std::optional<Names> names = NamesIn(figure.key, key, /*is_leaf=*/true))
      return {&figure, *std::move(names)};
  }
  return {};
}

bool IsSection(std::string_view key) {
  for (const Figure& figure : Figures()) {
    for (size_t dot = figure.key.find('.'); dot != figure.key.npos; dot = figure.key.find('.', dot + 1))
      if (NamesIn(std::string_view(figure.key).substr(0, dot), key, /*is_leaf=*/false)) return true;
  }
  return false;
}

}  // namespace ftc
