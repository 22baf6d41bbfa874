#include "tools/ftc/config/target_file.h"

#include <cmath>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "fmt/format.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "tools/ftc/config/train_yaml.h"

namespace ftc {
namespace {

using ft::Target;

// What a key stands for.
struct Figure {
  enum class Needed { kYes, kNo };
  std::string key;  // "links.node.gigabytes_per_s"
  Needed needed = Needed::kYes;
  // Returns what is wrong with the text, empty when nothing is.
  std::function<std::string(const std::string& text, Target& target)> set;
};

struct Bounds {
  double low, high;
  bool whole = false;
};

std::string ReadFigure(const std::string& text, const Bounds& bounds, double& value) {
  const bool read = absl::SimpleAtod(text, &value) && value >= bounds.low && value <= bounds.high;
  if (read && (!bounds.whole || value == std::floor(value))) return "";
  return fmt::format("'{}' is not a {}number of at least {} and at most {}", text,
                     bounds.whole ? "whole " : "", bounds.low, bounds.high);
}

// A number times `unit`, as a field that `field` gives.
template <typename Field>
Figure Scaled(std::string key, Figure::Needed needed, double unit, Bounds bounds, Field field) {
  return {std::move(key), needed, [=](const std::string& text, Target& target) {
            double value = 0;
            std::string mistake = ReadFigure(text, bounds, value);
            if (mistake.empty()) field(target, value * unit);
            return mistake;
          }};
}

// For who reads the file.
Figure Text(std::string key) {
  return {std::move(key), Figure::Needed::kNo, [](const std::string&, Target&) { return std::string(); }};
}

std::string SetDevice(const std::string& text, Target& target) {
  if (text != "cpu" && text != "cuda") return fmt::format("'{}' is neither cpu nor cuda", text);
  target.set_cuda(text == "cuda");
  return "";
}

constexpr double kTera = 1e12, kGiga = 1e9, kMicro = 1e-6, kMebi = 1 << 20;
// Within what VerifyTarget takes.
constexpr Bounds kRate{.low = 1e-9, .high = 1e9};
constexpr Bounds kLatency{.low = 0, .high = 1e9};
constexpr Bounds kCount{.low = 1, .high = 1024, .whole = true};
constexpr Bounds kMemory{.low = 1, .high = 1e9, .whole = true};
constexpr Bounds kBeside{.low = 0, .high = 1e9, .whole = true};

std::string SetName(const std::string& text, Target& target) {
  target.set_name(text);
  if (!text.empty() && text.size() <= ft::kLongestTargetName) return "";
  return fmt::format("wants 1 to {} bytes, not {}", ft::kLongestTargetName, text.size());
}

void AddRates(const std::string& name, Target::Rate* (Target::*rate)(), std::vector<Figure>& figures) {
  figures.push_back(Scaled("compute." + name + ".tflops", Figure::Needed::kYes, kTera, kRate,
                           [=](Target& t, double x) { (t.*rate)()->set_reached(x); }));
  figures.push_back(Scaled("compute." + name + ".peak_tflops", Figure::Needed::kNo, kTera, kRate,
                           [=](Target& t, double x) { (t.*rate)()->set_peak(x); }));
  figures.push_back(Text("compute." + name + ".source"));
}

void AddLink(const std::string& section, bool has_steps, Target::Link* (Target::*link)(),
             std::vector<Figure>& figures) {
  figures.push_back(Scaled(section + ".gigabytes_per_s", Figure::Needed::kYes, kGiga, kRate,
                           [=](Target& t, double x) { (t.*link)()->set_bytes_per_s(x); }));
  figures.push_back(Scaled(section + ".latency_us", Figure::Needed::kYes, kMicro, kLatency,
                           [=](Target& t, double x) { (t.*link)()->set_latency_s(x); }));
  if (has_steps)
    figures.push_back(Scaled(section + ".step_us", Figure::Needed::kNo, kMicro, kLatency,
                             [=](Target& t, double x) { (t.*link)()->set_step_s(x); }));
  figures.push_back(Text(section + ".source"));
}

std::vector<Figure> MakeFigures() {
  std::vector<Figure> figures = {
      {"name", Figure::Needed::kNo, SetName},
      Text("source"),
      {"device", Figure::Needed::kYes, SetDevice},
      Scaled("ranks_per_node", Figure::Needed::kYes, 1, kCount,
             [](Target& t, double x) { t.set_ranks_per_node(static_cast<uint32_t>(x)); }),
      Scaled("memory.capacity_mib", Figure::Needed::kNo, kMebi, kMemory,
             [](Target& t, double x) { t.set_memory_bytes(static_cast<uint64_t>(x)); }),
      Scaled("memory.gigabytes_per_s", Figure::Needed::kYes, kGiga, kRate,
             [](Target& t, double x) { t.set_memory_bytes_per_s(x); }),
      Scaled("memory.host_gigabytes_per_s", Figure::Needed::kNo, kGiga, kRate,
             [](Target& t, double x) { t.set_host_memory_bytes_per_s(x); }),
      Scaled("memory.beside_mib", Figure::Needed::kNo, kMebi, kBeside,
             [](Target& t, double x) { t.set_beside_bytes(static_cast<uint64_t>(x)); }),
      Scaled("memory.communicator_mib", Figure::Needed::kNo, kMebi, kBeside,
             [](Target& t, double x) { t.set_communicator_bytes(static_cast<uint64_t>(x)); }),
      Text("memory.source"),
  };
  AddRates("fp32", &Target::mutable_f32, figures);
  AddRates("bf16", &Target::mutable_bf16, figures);
  AddRates("fp16", &Target::mutable_f16, figures);
  figures.push_back(Scaled("kernels.latency_us", Figure::Needed::kYes, kMicro, kLatency,
                           [](Target& t, double x) { t.set_kernel_latency_s(x); }));
  figures.push_back(Text("kernels.source"));
  AddLink("links.node", /*has_steps=*/true, &Target::mutable_node, figures);
  AddLink("links.network", /*has_steps=*/true, &Target::mutable_network, figures);
  AddLink("copies", /*has_steps=*/false, &Target::mutable_copies, figures);
  return figures;
}

const std::vector<Figure>& Figures() {
  static const auto* const kFigures = new std::vector<Figure>(MakeFigures());
  return *kFigures;
}

const Figure* FindFigure(std::string_view key) {
  for (const Figure& figure : Figures()) {
    if (figure.key == key) return &figure;
  }
  return nullptr;
}

bool IsSection(std::string_view key) {
  for (const Figure& figure : Figures()) {
    if (figure.key.starts_with(std::string(key) + ".")) return true;
  }
  return false;
}

// What the file may have meant: a key beside it, or one of the same last word elsewhere.
std::string UnknownKey(const std::string& key) {
  std::vector<std::string_view> known;
  for (const Figure& figure : Figures()) {
    const std::string_view whole = figure.key;
    known.push_back(whole);
    for (size_t dot = whole.find('.'); dot != whole.npos; dot = whole.find('.', dot + 1))
      known.push_back(whole.substr(0, dot));
  }
  std::string_view nearest = ft::NearestName(key, known);
  for (const std::string_view figure : known) {
    if (nearest.empty() && figure.ends_with("." + key.substr(key.rfind('.') + 1))) nearest = figure;
  }
  return fmt::format(
      "unknown key '{}'{}", key,
      nearest.empty() ? "; docs/targets.md has all keys" : fmt::format(", did you mean '{}'?", nearest));
}

absl::Status Store(const TrainYaml& file, const YamlEntry& entry, Target& target) {
  const auto refuse = [&](int line, const std::string& message) {
    return absl::InvalidArgumentError(fmt::format("{}:{}: {}", file.name, line, message));
  };
  const Figure* figure = FindFigure(entry.path);
  if (entry.is_section && IsSection(entry.path)) return absl::OkStatus();
  if (figure == nullptr && !IsSection(entry.path)) return refuse(entry.key_line, UnknownKey(entry.path));
  if (figure == nullptr || entry.is_section || entry.is_list)
    return refuse(entry.key_line, fmt::format("'{}' wants {}", entry.path,
                                              figure == nullptr ? "keys of its own" : "one value"));
  const std::string mistake = figure->set(entry.text, target);
  return mistake.empty() ? absl::OkStatus()
                         : refuse(entry.line, fmt::format("'{}': {}", entry.path, mistake));
}

// The section of a file where more is reached than the peak; empty for none.
std::string AbovePeak(const Target& target) {
  const std::pair<const char*, const Target::Rate*> rates[] = {
      {"fp32", &target.f32()}, {"bf16", &target.bf16()}, {"fp16", &target.f16()}};
  for (const auto& [name, rate] : rates) {
    if (ft::ExceedsPeak(*rate)) return fmt::format("compute.{}", name);
  }
  return "";
}

absl::StatusOr<Target> ToTarget(const TrainYaml& file, const std::string& stem) {
  Target target;
  target.set_name(stem);
  std::map<std::string, int> lines;  // of the keys that are there
  for (const YamlEntry& entry : file.entries) {
    FT_RETURN_IF_ERROR(Store(file, entry, target));
    lines[entry.path] = entry.key_line;
  }
  for (const Figure& figure : Figures()) {
    if (figure.needed == Figure::Needed::kNo || lines.contains(figure.key)) continue;
    // The nearest section that the file has.
    int line = 1;
    for (size_t dot = figure.key.rfind('.'); dot != std::string::npos && dot > 0;
         dot = figure.key.rfind('.', dot - 1)) {
      const auto section = lines.find(figure.key.substr(0, dot));
      if (section == lines.end()) continue;
      line = section->second;
      break;
    }
    return absl::InvalidArgumentError(fmt::format("{}:{}: '{}' is missing", file.name, line, figure.key));
  }
  if (const std::string section = AbovePeak(target); !section.empty())
    return absl::InvalidArgumentError(fmt::format("{0}:{1}: '{2}.peak_tflops' is less than '{2}.tflops'",
                                                  file.name, lines[section + ".peak_tflops"], section));
  if (const absl::Status status = ft::VerifyTarget(target); !status.ok())
    return absl::InvalidArgumentError(fmt::format("{}:1: {}", file.name, std::string(status.message())));
  return target;
}

}  // namespace

absl::StatusOr<Target> ParseTarget(std::string_view text, const std::string& name, const std::string& stem) {
  FT_ASSIGN_OR_RETURN(const TrainYaml file, ParseTrainYaml(text, name));
  return ToTarget(file, stem);
}

absl::StatusOr<Target> ReadTarget(const std::string& path) {
  FT_ASSIGN_OR_RETURN(const TrainYaml file, ReadTrainYaml(path));
  const std::string last = path.substr(path.rfind('/') + 1);
  return ToTarget(file, ft::Printable(last.substr(0, last.rfind('.'))));
}

bool IsTargetFile(std::string_view text) {
  return text.find('/') != text.npos || text.ends_with(".yaml") || text.ends_with(".yml");
}

}  // namespace ftc
