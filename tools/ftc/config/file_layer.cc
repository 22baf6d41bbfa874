#include "tools/ftc/config/file_layer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "fmt/format.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/status_macros.h"
#include "tools/ftc/config/layers.h"
#include "tools/ftc/config/settings.h"

namespace ftc {
namespace {

// Accelerate's names of sections, and the spelling without a section: made into what the tables have.
std::string SpellAsTable(std::string path) {
  constexpr std::pair<std::string_view, std::string_view> kPrefixes[] = {
      {"fsdp_config.", "fsdp."}, {"deepspeed_config.", ""}, {"deepspeed.", ""}};
  for (const auto& [from, to] : kPrefixes) {
    if (path.starts_with(from)) path = std::string(to) + path.substr(from.size());
  }
  if (path.starts_with("fsdp_") && path != "fsdp_config") path = "fsdp." + path;
  return path;
}

// In the section fsdp the prefix fsdp_ may be left out.
std::string IdentityOf(const std::string& path) {
  std::string spelled = SpellAsTable(path);
  if (spelled.starts_with("fsdp.fsdp_")) spelled.erase(5, 5);
  return spelled;
}

std::string SectionOf(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == path.npos ? "" : std::string(path.substr(0, dot + 1));
}

// What stands behind a key: a setting with its converter, or a reason to leave it alone.
struct Target {
  std::string key;
  const Setting* setting = nullptr;
  const Alias* alias = nullptr;  // null for a setting's own name
  const ForeignKey* foreign = nullptr;
};

class KeyTable {
 public:
  KeyTable() {
    for (const Setting& setting : Settings()) {
      Add({.key = setting.name, .setting = &setting});
      for (const Alias& alias : setting.aliases)
        Add({.key = alias.key, .setting = &setting, .alias = &alias});
    }
    for (const ForeignKey& foreign : ForeignKeys()) Add({.key = foreign.key, .foreign = &foreign});
    for (const char* name : {"fsdp_config", "deepspeed_config", "deepspeed"}) sections_.insert(name);
  }

  // None for an unknown key.
  const std::vector<Target>& Find(const std::string& path) const {
    static const auto* const kNone = new std::vector<Target>;
    const auto found = targets_.find(IdentityOf(path));
    return found == targets_.end() ? *kNone : found->second;
  }
  bool IsSection(const std::string& path) const {
    return sections_.contains(path) || sections_.contains(SpellAsTable(path));
  }
  std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    for (const auto& [identity, targets] : targets_) keys.push_back(targets[0].key);
    return keys;
  }

  // "; did you mean 'fsdp_sharding_strategy'?", or where to look.
  std::string Suggestion(const std::string& path) const {
    const std::string spelled = SpellAsTable(path), section = SectionOf(spelled);
    const std::string word = spelled.substr(section.size());
    std::vector<std::string> all = Keys();
    all.insert(all.end(), sections_.begin(), sections_.end());
    std::vector<std::string_view> beside, whole;
    for (const std::string& key : all) {
      if (SectionOf(key) == section) beside.push_back(std::string_view(key).substr(section.size()));
      whole.push_back(key);
    }
    std::string_view nearest = ft::NearestName(word, beside);
    if (nearest.empty()) nearest = ft::NearestName(spelled, whole);
    for (const std::string& key : all) {
      if (nearest.empty() && key.ends_with("." + word)) nearest = key;
    }
    return nearest.empty() ? "; ftc compile --print-config shows the keys there are"
                           : fmt::format("; did you mean '{}'?", nearest);
  }

 private:
  void Add(Target target) {
    for (std::string section = SectionOf(target.key); !section.empty(); section = SectionOf(section)) {
      section.pop_back();
      sections_.insert(section);
    }
    targets_[IdentityOf(target.key)].push_back(std::move(target));
  }

  std::map<std::string, std::vector<Target>> targets_;
  std::set<std::string> sections_;
};

const KeyTable& Table() {
  static const KeyTable* const kTable = new KeyTable;
  return *kTable;
}

class Reader {
 public:
  Reader(const TrainYaml& file, const std::vector<Given>& flags) : file_(file), flags_(flags) {}

  absl::StatusOr<FileLayer> Read() {
    for (const YamlEntry& entry : file_.entries) FT_RETURN_IF_ERROR(CheckKey(entry));
    for (const bool late : {false, true}) {
      for (const YamlEntry& entry : file_.entries) {
        if (entry.is_section) continue;
        for (const Target& target : Table().Find(entry.path)) {
          const bool is_late = target.alias != nullptr && target.alias->converter.late;
          if (target.setting != nullptr && is_late == late) FT_RETURN_IF_ERROR(Convert(entry, target));
        }
      }
    }
    return std::move(layer_);
  }

 private:
  absl::Status Refuse(const YamlEntry& entry, const std::string& message) const {
    return absl::InvalidArgumentError(
        fmt::format("{}:{}:{}: '{}': {}", file_.name, entry.line, entry.column, entry.path, message));
  }

  absl::Status CheckKey(const YamlEntry& entry) {
    const std::vector<Target>& targets = Table().Find(entry.path);
    const Target* target = targets.empty() ? nullptr : targets.data();
    const bool is_section = Table().IsSection(entry.path);
    if (target == nullptr && !is_section)
      return absl::InvalidArgumentError(fmt::format("{}:{}: unknown key '{}'{}", file_.name, entry.key_line,
                                                    entry.path, Table().Suggestion(entry.path)));
    if (entry.is_section && !is_section) return Refuse(entry, "wants a value, not keys of its own");
    if (!entry.is_section && target == nullptr && entry.text != "null")
      return Refuse(entry, fmt::format("is a section; '{}' is no key of it", entry.text));
    if (!entry.is_section && target != nullptr && target->foreign != nullptr &&
        !target->foreign->reason.empty())
      Remark(entry, fmt::format("has no effect: {}", target->foreign->reason));
    return absl::OkStatus();
  }

  void Remark(const YamlEntry& entry, const std::string& text) {
    layer_.remarks.push_back(fmt::format("'{}' in {}:{} {}", entry.path, file_.name, entry.key_line, text));
  }

  absl::Status Convert(const YamlEntry& entry, const Target& target) {
    const Setting& setting = *target.setting;
    if (entry.is_list && !setting.list) return Refuse(entry, "wants one value, not a list");
    // Hugging Face fills such values in for DeepSpeed.
    if (target.alias != nullptr && Plain(entry.text) == "auto") return absl::OkStatus();
    Conversion conversion;
    if (entry.is_list)
      conversion.text = *setting.list + entry.text;
    else
      conversion = target.alias == nullptr ? SameValue().convert(ReadingOf(entry))
                                           : target.alias->converter.convert(ReadingOf(entry));
    if (!conversion.mistake.empty()) return Refuse(entry, conversion.mistake);
    if (!conversion.text) return absl::OkStatus();
    Configuration scratch;
    const std::string mistake = setting.value.set(*conversion.text, scratch);
    if (!mistake.empty()) return Refuse(entry, mistake);
    // Checked all the same: a section that is turned off says nothing.
    if (target.alias != nullptr && IsOff(entry)) return absl::OkStatus();
    if (!conversion.remark.empty()) Remark(entry, conversion.remark);
    layer_.given.push_back(
        {.setting = SettingIndex(setting.name),
         .text = setting.value.show(scratch),
         .origin = {
             .from = Origin::From::kFile, .key = entry.path, .file = file_.name, .line = entry.key_line}});
    return absl::OkStatus();
  }

  std::optional<std::string> Sibling(const YamlEntry& entry, std::string_view key) const {
    const std::string path = SectionOf(entry.path) + std::string(key);
    for (const YamlEntry& other : file_.entries) {
      if (!other.is_section && other.path == path) return other.text;
    }
    return std::nullopt;
  }

  bool IsOff(const YamlEntry& entry) const {
    const std::string section = SectionOf(entry.path);
    if (section.empty() || entry.path == section + "enabled") return false;
    const std::optional<std::string> enabled = Sibling(entry, "enabled");
    return enabled && ReadBool(*enabled) == false;
  }

  Reading ReadingOf(const YamlEntry& entry) const {
    return {.text = entry.text,
            .is_list = entry.is_list,
            .sibling = [this, &entry](std::string_view key) { return Sibling(entry, key); },
            .effective = [this](std::string_view name) { return EffectiveText(name, layer_.given, flags_); }};
  }

  const TrainYaml& file_;
  const std::vector<Given>& flags_;
  FileLayer layer_;
};

}  // namespace

absl::StatusOr<FileLayer> ReadFileLayer(const TrainYaml& file, const std::vector<Given>& flags) {
  return Reader(file, flags).Read();
}

std::vector<std::string> KnownKeys() { return Table().Keys(); }

}  // namespace ftc
