// Keys of Accelerate, DeepSpeed and Hugging Face that no setting stands for: passed over with the reason, or
// refused with it.
#pragma once

#include <string>
#include <vector>

#include "tools/ftc/config/train_yaml.h"

namespace ftc {

struct ForeignKey {
  enum class Use {
    kPassedOver,
    kRefused,
    kElsewhere,  // read beside another key, or by accelerate.h
    kSilent,     // says nothing by itself
  };

  std::string key;  // "a.b"; "a.*" is everything in section a that no other row names
  Use use = Use::kPassedOver;
  std::string reason;
  // As Plain makes them: what asks for nothing, besides what SaysNotUsed.
  std::vector<std::string> at_rest;
};

const std::vector<ForeignKey>& ForeignKeys();

// false, no, off, none, null, nothing at all, an empty list.
bool SaysNotUsed(const YamlEntry& entry);

// ... or one of the key's own, or "auto": whoever fills that in is not here.
bool IsAtRest(const ForeignKey& key, const YamlEntry& entry);

// "_comment", "_comment2": how JSON files are commented.
bool IsComment(const std::string& path);

}  // namespace ftc
