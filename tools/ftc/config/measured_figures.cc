#include "tools/ftc/config/measured_figures.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "fmt/format.h"
#include "tools/ftc/config/figure_readers.h"

namespace ftc {
namespace {

using ft::Target;
using namespace figure;

struct TypeName {
  std::string_view name;
  ft::proto::DType dtype;
};
constexpr TypeName kTypes[] = {{"fp32", ft::proto::F32}, {"bf16", ft::proto::BF16}, {"fp16", ft::proto::F16}};

// "fp32,bf16"
std::string SetMeasuredTypes(const Names&, const std::string& text, Target& target) {
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(text, ','))) {
    const auto type =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) { return t.name == name; });
    if (type == std::end(kTypes)) return fmt::format("'{}' is none of fp32, bf16, fp16", name);
    target.mutable_measured()->add_dtypes(type->dtype);
  }
  return "";
}

// With what it was: ranks of a host, threads of each, instructions.
void AddLayout(const std::string& section, void (Target::Measured::*ranks)(uint32_t),
               void (Target::Measured::*threads)(uint32_t),
               void (*instruction_set)(Target::Measured&, const std::string&), std::vector<Figure>& figures) {
  const auto no = Figure::Needed::kNo;
  figures.push_back(Scaled(section + "ranks", no, 1, kCount, [=](Target& t, double x) {
    (t.mutable_measured()->*ranks)(static_cast<uint32_t>(x));
  }));
  figures.push_back(Scaled(section + "threads", no, 1, kExtent, [=](Target& t, double x) {
    (t.mutable_measured()->*threads)(static_cast<uint32_t>(x));
  }));
  figures.push_back({section + "instruction_set", no, [=](const Names&, const std::string& text, Target& t) {
                       instruction_set(*t.mutable_measured(), text);
                       return CheckPrinted(text);
                     }});
}

// How the machine was measured.
void AddCircumstances(std::vector<Figure>& figures) {
  using Measured = Target::Measured;
  const auto no = Figure::Needed::kNo;
  figures.push_back(Text("measured.source"));
  AddLayout(
      "measured.", &Measured::set_ranks_on_node, &Measured::set_threads,
      [](Measured& m, const std::string& text) { m.set_instruction_set(text); }, figures);
  AddLayout(
      "measured.timed.", &Measured::set_timed_ranks_on_node, &Measured::set_timed_threads,
      [](Measured& m, const std::string& text) { m.set_timed_instruction_set(text); }, figures);
  figures.push_back({"measured.dtypes", no, SetMeasuredTypes});
  const std::pair<const char*, void (Measured::*)(double)> spreads[] = {
      {"drift", &Measured::set_drift},
      {"spread.products", &Measured::set_products},
      {"spread.attention", &Measured::set_attention},
      {"spread.memory", &Measured::set_memory},
      {"spread.collectives", &Measured::set_collectives},
      {"spread.copies", &Measured::set_copies},
      {"spread.kernels", &Measured::set_kernels}};
  for (const auto& [name, set_field] : spreads) {
    const auto set = set_field;
    figures.push_back(Scaled(fmt::format("measured.{}", name), no, 1, kLonger,
                             [=](Target& t, double x) { (t.mutable_measured()->*set)(x); }));
  }
}

// The kernel of a key, in order.
Target::TimedKernel* TimedKernelOf(uint64_t key, Target& target) {
  auto& timed = *target.mutable_timed_kernels();
  const auto found = std::lower_bound(
      timed.begin(), timed.end(), key,
      [](const Target::TimedKernel& kernel, uint64_t wanted) { return kernel.key() < wanted; });
  const auto at = static_cast<int>(found - timed.begin());
  if (at < timed.size() && timed[at].key() == key) return &timed[at];
  timed.Add()->set_key(key);
  timed[timed.size() - 1].set_share(1);
  for (int i = timed.size() - 1; i > at; --i) timed.SwapElements(i, i - 1);
  return &timed[at];
}

// A figure of a kernel that was timed, whose key is the name: 16 hexadecimal digits.
template <typename Field>
Figure OfTimedKernel(const char* key, double unit, Bounds bounds, Field field) {
  return {key, Figure::Needed::kNo,
          [=](const Names& names, const std::string& text, Target& target) -> std::string {
            uint64_t number = 0;
            double value = 0;
            if (names[0].size() != 16 ||
                !std::all_of(names[0].begin(), names[0].end(), absl::ascii_isxdigit) ||
                !absl::SimpleHexAtoi(names[0], &number))
              return fmt::format("the key '{}' is not 16 hexadecimal digits", names[0]);
            std::string mistake = CheckSpelling(names[0], fmt::format("{:016x}", number));
            if (mistake.empty()) mistake = ReadFigure(text, bounds, value);
            if (mistake.empty()) field(*TimedKernelOf(number, target), value * unit);
            return mistake;
          }};
}

void AddTimedKernels(std::vector<Figure>& figures) {
  using Timed = Target::TimedKernel;
  figures.push_back(
      OfTimedKernel("kernels.timed.*.us", kMicro, kTaken, [](Timed& k, double x) { k.set_seconds(x); }));
  figures.push_back(OfTimedKernel("kernels.timed.*.share", 1, {.low = 1e-9, .high = 1000},
                                  [](Timed& k, double x) { k.set_share(x); }));
  figures.push_back(
      OfTimedKernel("kernels.timed.*.spread", 1, kLonger, [](Timed& k, double x) { k.set_spread(x); }));
}

}  // namespace

void AddMeasured(std::vector<Figure>& figures) {
  AddCircumstances(figures);
  AddTimedKernels(figures);
}

}  // namespace ftc
