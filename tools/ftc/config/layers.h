// Precedence: defaults, then train.yaml, then flags.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tools/ftc/config/configuration.h"
#include "tools/ftc/config/given.h"

namespace ftc {

struct Effective {
  Configuration configuration;
  std::vector<Origin> origins;       // of each of Settings()
  std::vector<std::string> remarks;  // one line each, for standard error
  // The same of settings that nothing reads as the others are, which a search may choose otherwise.
  std::vector<std::string> unread;

  const Origin& OriginOf(std::string_view setting) const;
  bool IsGiven(std::string_view setting) const;
};

// Refused: two keys of one layer that set one setting differently, and settings that do not go together (see
// consistency.h).
std::variant<Effective, Refusal> Resolve(const std::vector<Given>& file, const std::vector<Given>& flags);

// One setting as text, as Resolve would have it; of keys that contradict each other, the first counts.
std::string EffectiveText(std::string_view setting, const std::vector<Given>& file,
                          const std::vector<Given>& flags);

}  // namespace ftc
