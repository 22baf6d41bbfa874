// What a train.yaml says by key, whatever its spelling, and whose file it is.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tools/ftc/config/train_yaml.h"

namespace ftc {

// Accelerate's distributed_type, as far as it matters here.
enum class Distribution { kUnsaid, kNone, kReplicated, kFsdp, kDeepSpeed };

struct DistributedType {
  Distribution distribution = Distribution::kUnsaid;
  std::string refusal;  // not empty: why it is refused
};
DistributedType ReadDistributedType(std::string_view text);

class FileView {
 public:
  explicit FileView(const TrainYaml& file);  // which outlives it

  // The entry of a key as the tables have it, also through a section that deepspeed_config_file names. Null
  // when it is absent or left out.
  const YamlEntry* Find(std::string_view key) const;
  // Some key of a section ("optimizer.") that is not left out; null when there is none.
  const YamlEntry* FirstOf(std::string_view section) const;

  // In a section with enabled: false, or in fsdp_config or deepspeed_config where distributed_type is
  // another.
  bool IsLeftOut(const YamlEntry& entry) const;
  // The key of a section that distributed_type leaves out, "" for any other entry.
  std::string UnusedSection(const YamlEntry& entry) const;

  Distribution distribution() const { return distribution_; }

 private:
  std::map<std::string, const YamlEntry*> entries_;  // by IdentityOf, leaves alone
  std::map<std::string, bool> off_;                  // sections of a file by "file\n" + "a.b."
  Distribution distribution_ = Distribution::kUnsaid;
};

}  // namespace ftc
