#include "tools/ftc/config/key_table.h"

#include "runtime/base/did_you_mean.h"

namespace ftc {

std::string SpellAsTable(std::string path) {
  constexpr std::pair<std::string_view, std::string_view> kPrefixes[] = {
      {"fsdp_config.", "fsdp."}, {"deepspeed_config.", ""}, {"deepspeed.", ""}, {"bfloat16.", "bf16."}};
  for (const auto& [from, to] : kPrefixes) {
    if (path.starts_with(from)) path = std::string(to) + path.substr(from.size());
  }
  if (path.starts_with("fsdp_") && path != "fsdp_config") path = "fsdp." + path;
  return path;
}

std::string IdentityOf(const std::string& path) {
  constexpr std::pair<std::string_view, std::string_view> kOptional[] = {
      {"fsdp.", "fsdp_"}, {"zero_optimization.", "stage3_"}, {"parallelism_config.", "parallelism_config_"}};
  std::string spelled = SpellAsTable(path);
  for (const auto& [section, prefix] : kOptional) {
    if (spelled.starts_with(section) && spelled.substr(section.size()).starts_with(prefix))
      spelled.erase(section.size(), prefix.size());
  }
  return spelled;
}

std::string SectionOf(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == path.npos ? "" : std::string(path.substr(0, dot + 1));
}

const KeyTable& KeyTable::Get() {
  static const KeyTable* const kTable = new KeyTable;
  return *kTable;
}

KeyTable::KeyTable() {
  for (const Setting& setting : Settings()) {
    Add({.key = setting.name, .setting = &setting});
    for (const Alias& alias : setting.aliases) Add({.key = alias.key, .setting = &setting, .alias = &alias});
  }
  for (const ForeignKey& foreign : ForeignKeys()) {
    std::string key = IdentityOf(foreign.key);
    if (key.ends_with(".*")) key.pop_back();
    foreign_.emplace(key, &foreign);
    AddSections(key);
  }
  for (const char* name : {"fsdp_config", "deepspeed_config", "deepspeed", "bfloat16"})
    sections_.insert(name);
}

void KeyTable::Add(Target target) {
  AddSections(target.key);
  targets_[IdentityOf(target.key)].push_back(std::move(target));
}

void KeyTable::AddSections(const std::string& key) {
  for (std::string section = SectionOf(key); !section.empty(); section = SectionOf(section)) {
    section.pop_back();
    sections_.insert(section);
  }
}

const std::vector<Target>& KeyTable::Find(const std::string& path) const {
  static const auto* const kNone = new std::vector<Target>;
  const auto found = targets_.find(IdentityOf(path));
  return found == targets_.end() ? *kNone : found->second;
}

const ForeignKey* KeyTable::FindForeign(const std::string& path) const {
  std::string key = IdentityOf(path);
  if (const auto found = foreign_.find(key); found != foreign_.end()) return found->second;
  if (const auto found = foreign_.find(key + "."); found != foreign_.end()) return found->second;
  while (!(key = SectionOf(key)).empty()) {
    if (const auto found = foreign_.find(key); found != foreign_.end()) return found->second;
    key.pop_back();
  }
  return nullptr;
}

bool KeyTable::IsSection(const std::string& path) const {
  return sections_.contains(path) || sections_.contains(SpellAsTable(path));
}

std::vector<std::string> KeyTable::Keys() const {
  std::vector<std::string> keys;
  for (const auto& [identity, targets] : targets_) keys.push_back(targets[0].key);
  for (const auto& [identity, foreign] : foreign_) {
    if (!foreign->key.ends_with(".*")) keys.push_back(foreign->key);
  }
  return keys;
}

std::string KeyTable::Nearest(const std::string& path) const {
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
  return std::string(nearest);
}

}  // namespace ftc
