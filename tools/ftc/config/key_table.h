// What stands behind each key of train.yaml.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/ftc/config/foreign_keys.h"
#include "tools/ftc/config/settings.h"

namespace ftc {

// As the tables have it: without deepspeed_config, with fsdp for fsdp_config.
std::string SpellAsTable(std::string path);

// The same for all spellings of one key: in the section fsdp the prefix fsdp_ may be left out, in
// zero_optimization stage3_, in parallelism_config its own name.
std::string IdentityOf(const std::string& path);

// "a.b." of "a.b.c"; "" at the top.
std::string SectionOf(std::string_view path);

// A setting with its converter, or a key that no setting stands for.
struct Target {
  std::string key;
  const Setting* setting = nullptr;
  const Alias* alias = nullptr;  // null for a setting's own name
};

class KeyTable {
 public:
  static const KeyTable& Get();

  // None for a key that no setting has.
  const std::vector<Target>& Find(const std::string& path) const;
  // Null for a key that is not foreign. A key's own row comes before those of its sections, the nearest
  // first.
  const ForeignKey* FindForeign(const std::string& path) const;
  bool IsSection(const std::string& path) const;
  // All of them, as the documentation spells them.
  std::vector<std::string> Keys() const;

  // "fsdp_sharding_strategy", the known key that is nearest to an unknown one; "" when none is near.
  std::string Nearest(const std::string& path) const;

 private:
  KeyTable();
  void Add(Target target);
  void AddSections(const std::string& key);

  std::map<std::string, std::vector<Target>> targets_;
  std::map<std::string, const ForeignKey*> foreign_;  // a section's row: "tensorboard."
  std::set<std::string> sections_;
};

}  // namespace ftc
