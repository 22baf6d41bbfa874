#include "tools/ftc/config/file_layer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "tools/ftc/config/config_files.h"
#include "tools/ftc/config/file_view.h"
#include "tools/ftc/config/key_table.h"
#include "tools/ftc/config/layers.h"
#include "tools/ftc/config/parallelism_config.h"
#include "tools/ftc/config/program_defaults.h"

namespace ftc {
namespace {

// A key as it is named, and where it stands.
using Keyed = std::pair<std::string, const YamlEntry*>;

class Reader {
 public:
  Reader(const TrainYaml& file, const std::vector<Given>& flags) : file_(file), flags_(flags), view_(file) {}

  absl::StatusOr<FileLayer> Read() {
    for (const YamlEntry& entry : file_.entries) FT_RETURN_IF_ERROR(CheckList(entry));
    for (const YamlEntry& entry : file_.entries) FT_RETURN_IF_ERROR(CheckKey(entry));
    FT_RETURN_IF_ERROR(ReadDistribution());
    for (const bool late : {false, true}) {
      for (const YamlEntry& entry : file_.entries) {
        if (entry.is_section) continue;
        for (const Target& target : KeyTable::Get().Find(entry.path)) {
          const bool is_late = target.alias != nullptr && target.alias->converter.late;
          if (is_late == late) FT_RETURN_IF_ERROR(Convert(entry, target));
        }
      }
    }
    AddProgramDefaults(view_, flags_, layer_.given, layer_.remarks);
    const YamlEntry* entry = nullptr;
    const std::string mistake = ApplyParallelism(view_, layer_.given, layer_.remarks, entry);
    if (!mistake.empty()) return Refuse(*entry, mistake);
    NameAutos();
    for (const auto& [reason, entries] : notes_) AddNote(reason, entries);
    return std::move(layer_);
  }

 private:
  static absl::Status Refuse(const YamlEntry& entry, const std::string& message) {
    return absl::InvalidArgumentError(
        fmt::format("{}:{}:{}: '{}': {}", entry.file, entry.line, entry.column, entry.path, message));
  }

  // Only what is passed over may hold lists of anything but words.
  static absl::Status CheckList(const YamlEntry& entry) {
    if (!entry.is_nested || IsComment(entry.path) || KeyTable::Get().FindForeign(entry.path) != nullptr)
      return absl::OkStatus();
    if (KeyTable::Get().Find(entry.path).empty()) return RefuseUnknown(entry);
    return Refuse(entry, "wants a list of words");
  }

  absl::Status CheckKey(const YamlEntry& entry) {
    const KeyTable& table = KeyTable::Get();
    if (IsComment(entry.path)) return absl::OkStatus();
    if (const std::string section = view_.UnusedSection(entry); !section.empty() && !SaysNotUsed(entry))
      Note("distributed_type is another", section, entry);
    const bool is_section = table.IsSection(entry.path);
    if (!table.Find(entry.path).empty()) {
      if (entry.is_section && !is_section) return Refuse(entry, "wants a value, not keys of its own");
      return absl::OkStatus();
    }
    if (const ForeignKey* foreign = table.FindForeign(entry.path)) return CheckForeign(entry, *foreign);
    if (!is_section) return CheckUnknown(entry);
    if (entry.is_section || SaysNotUsed(entry) || NamesFile(entry)) return absl::OkStatus();
    return Refuse(entry, fmt::format("is a section; '{}' is no key of it", entry.text));
  }

  absl::Status CheckForeign(const YamlEntry& entry, const ForeignKey& foreign) {
    const bool of_section = foreign.key.ends_with(".*");
    if (entry.is_section)
      return of_section ? absl::OkStatus() : Refuse(entry, "wants a value, not keys of its own");
    if (view_.IsLeftOut(entry) || IsAtRest(foreign, entry)) return absl::OkStatus();
    if (foreign.use == ForeignKey::Use::kRefused) return Refuse(entry, foreign.reason);
    if (foreign.use == ForeignKey::Use::kPassedOver) {
      const size_t dots = std::count(foreign.key.begin(), foreign.key.end(), '.');
      Note(foreign.reason, of_section ? Ancestor(entry.path, dots) : entry.path, entry);
    }
    return absl::OkStatus();
  }

  // "a.b" of "a.b.c.d" for 2.
  static std::string Ancestor(const std::string& path, size_t parts) {
    size_t end = 0;
    for (; parts > 0 && end != path.npos; --parts) end = path.find('.', end + (end > 0 ? 1 : 0));
    return path.substr(0, end);
  }

  // Of another program's file, a key that nothing here resembles and that asks for nothing.
  absl::Status CheckUnknown(const YamlEntry& entry) {
    const std::string nearest = KeyTable::Get().Nearest(entry.path);
    const bool is_foreign = view_.distribution() != Distribution::kUnsaid ||
                            view_.FirstOf("zero_optimization.") != nullptr ||
                            view_.Find("compute_environment") != nullptr;
    if (nearest.empty() && is_foreign && AsksForNothing(entry)) {
      if (!entry.is_section)
        Note("nothing by this name is known, and its value says that it is not used", entry.path, entry);
      return absl::OkStatus();
    }
    return RefuseUnknown(entry);
  }

  static absl::Status RefuseUnknown(const YamlEntry& entry) {
    const std::string nearest = KeyTable::Get().Nearest(entry.path);
    const std::string hint = nearest.empty() ? "; ftc compile --print-config shows the keys there are"
                                             : fmt::format("; did you mean '{}'?", nearest);
    return absl::InvalidArgumentError(
        fmt::format("{}:{}: unknown key '{}'{}", entry.file, entry.key_line, entry.path, hint));
  }

  bool AsksForNothing(const YamlEntry& entry) const {
    if (!entry.is_section) return SaysNotUsed(entry);
    return std::all_of(file_.entries.begin(), file_.entries.end(), [&](const YamlEntry& other) {
      return other.is_section || !other.path.starts_with(entry.path + ".") || SaysNotUsed(other);
    });
  }

  absl::Status ReadDistribution() {
    const YamlEntry* entry = view_.Find("distributed_type");
    if (entry == nullptr) return absl::OkStatus();
    const DistributedType type = ReadDistributedType(entry->text);
    if (!type.refusal.empty()) return Refuse(*entry, type.refusal);
    if (type.distribution == Distribution::kNone || type.distribution == Distribution::kReplicated)
      Give(*entry, "strategy", "no_shard");
    return absl::OkStatus();
  }

  void Give(const YamlEntry& entry, std::string_view setting, std::string text) {
    layer_.given.push_back(
        {.setting = SettingIndex(setting),
         .text = std::move(text),
         .origin = {
             .from = Origin::From::kFile, .key = entry.path, .file = entry.file, .line = entry.key_line}});
  }

  void Remark(const YamlEntry& entry, const std::string& text) {
    layer_.remarks.push_back(fmt::format("'{}' in {}:{} {}", entry.path, entry.file, entry.key_line, text));
  }

  // One line for all keys with a reason.
  void Note(const std::string& reason, const std::string& key, const YamlEntry& entry) {
    auto at =
        std::find_if(notes_.begin(), notes_.end(), [&](const auto& note) { return note.first == reason; });
    if (at == notes_.end()) at = notes_.insert(notes_.end(), {reason, {}});
    for (const auto& [noted, where] : at->second) {
      if (noted == key) return;
    }
    at->second.emplace_back(key, &entry);
  }

  void AddNote(const std::string& reason, const std::vector<Keyed>& keys) {
    layer_.remarks.push_back(
        fmt::format("{} {} no effect: {}", PlacesOf(keys), keys.size() == 1 ? "has" : "have", reason));
  }

  // "'a', 'b' in train.yaml:3,4 and 'c' in zero.json:2"
  static std::string PlacesOf(const std::vector<Keyed>& keys) {
    std::string text;
    for (size_t i = 0; i < keys.size();) {
      std::string names, lines;
      const std::string& file = keys[i].second->file;
      for (; i < keys.size() && keys[i].second->file == file; ++i) {
        names += fmt::format("{}'{}'", names.empty() ? "" : ", ", keys[i].first);
        lines += fmt::format("{}{}", lines.empty() ? "" : ",", keys[i].second->key_line);
      }
      text += fmt::format("{}{} in {}:{}", text.empty() ? "" : " and ", names, file, lines);
    }
    return text;
  }

  absl::Status Convert(const YamlEntry& entry, const Target& target) {
    const Setting& setting = *target.setting;
    const bool is_own = target.alias == nullptr;
    if (entry.is_list && !setting.list) return Refuse(entry, "wants one value, not a list");
    const bool is_open = !is_own && Plain(entry.text) == "auto" && !IsValue(entry, target);
    if (is_open && !view_.IsLeftOut(entry)) autos_.emplace_back(&entry, &setting);
    // Hugging Face fills such values in for DeepSpeed; null is DeepSpeed's for a key that is absent.
    if (is_open || (!is_own && entry.text.empty())) return absl::OkStatus();
    if (entry.text.empty() && !entry.is_list) return Refuse(entry, "has no value");
    Conversion conversion = ConversionOf(entry, target);
    Configuration scratch;
    if (conversion.mistake.empty() && conversion.text)
      conversion.mistake = setting.value.set(*conversion.text, scratch);
    const bool may_be_null = !is_own || KeyTable::Get().IsSection(entry.path);
    if (may_be_null && !conversion.mistake.empty() && entry.text == "null") return absl::OkStatus();
    if (!conversion.mistake.empty()) return Refuse(entry, conversion.mistake);
    // Checked all the same: a section that is turned off says nothing.
    if (!conversion.text || (!is_own && view_.IsLeftOut(entry))) return absl::OkStatus();
    if (!conversion.remark.empty()) Remark(entry, conversion.remark);
    Give(entry, setting.name, setting.value.show(scratch));
    return absl::OkStatus();
  }

  // What is said is one of the setting's own words: fsdp_sharding_strategy: auto.
  bool IsValue(const YamlEntry& entry, const Target& target) const {
    const Conversion conversion = ConversionOf(entry, target);
    Configuration scratch;
    return conversion.mistake.empty() && conversion.text &&
           target.setting->value.set(*conversion.text, scratch).empty();
  }

  Conversion ConversionOf(const YamlEntry& entry, const Target& target) const {
    if (entry.is_list) {
      const std::string items = *target.setting->list + entry.text;
      return {.text = items.empty() ? "none" : items, .mistake = {}, .remark = {}};
    }
    return (target.alias == nullptr ? SameValue() : target.alias->converter).convert(ReadingOf(entry));
  }

  // "auto" is for the training script to fill in; none runs here.
  void NameAutos() {
    std::string text, file;
    for (const auto& [entry, setting] : autos_) {
      // The batch is the model's, and any number of ranks will do.
      if (IsSaid(setting->name) || setting->name == "batch" || setting->name == "global_batch") continue;
      if (text.empty())
        text = fmt::format("auto is for a training script to fill in; here it is the default. In {}: ",
                           file = entry->file);
      else if (file != entry->file)
        text += fmt::format("; in {}: ", file = entry->file);
      else
        text += ", ";
      text += fmt::format("{} (line {}) {}={}", entry->path, entry->key_line, setting->name,
                          EffectiveText(setting->name, layer_.given, flags_));
    }
    if (!text.empty()) layer_.remarks.push_back(text);
  }

  bool IsSaid(const std::string& setting) const {
    std::vector<std::string> names = Settings()[SettingIndex(setting)].stands_for;
    names.push_back(setting);
    for (const std::vector<Given>* layer : {&layer_.given, &flags_}) {
      for (const Given& given : *layer) {
        if (std::find(names.begin(), names.end(), Settings()[given.setting].name) != names.end()) return true;
      }
    }
    return false;
  }

  std::optional<std::string> Sibling(const YamlEntry& entry, std::string_view key) const {
    const std::string path = SectionOf(entry.path) + std::string(key);
    for (const YamlEntry& other : file_.entries) {
      if (!other.is_section && other.path == path && other.file == entry.file) return other.text;
    }
    return std::nullopt;
  }

  Reading ReadingOf(const YamlEntry& entry) const {
    return {.text = entry.text,
            .is_list = entry.is_list,
            .sibling = [this, &entry](std::string_view key) { return Sibling(entry, key); },
            .elsewhere =
                [this](std::string_view key) {
                  const YamlEntry* found = view_.Find(key);
                  return found == nullptr ? std::nullopt : std::optional(found->text);
                },
            .effective = [this](std::string_view name) { return EffectiveText(name, layer_.given, flags_); }};
  }

  const TrainYaml& file_;
  const std::vector<Given>& flags_;
  const FileView view_;
  FileLayer layer_;
  std::vector<std::pair<const YamlEntry*, const Setting*>> autos_;
  std::vector<std::pair<std::string, std::vector<Keyed>>> notes_;
};

}  // namespace

absl::StatusOr<FileLayer> ReadFileLayer(const TrainYaml& file, const std::vector<Given>& flags) {
  return Reader(file, flags).Read();
}

std::vector<std::string> KnownKeys() { return KeyTable::Get().Keys(); }

}  // namespace ftc
