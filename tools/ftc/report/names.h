// Texts that many rows of the report have in common, each once.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "nlohmann/json.hpp"

namespace ftc {

class Names {
 public:
  // The number of a text; the same for the same text.
  uint32_t Add(const std::string& text) {
    const auto [found, added] = numbers_.try_emplace(text, static_cast<uint32_t>(numbers_.size()));
    if (added) texts_.push_back(text);
    return found->second;
  }

  nlohmann::ordered_json Take() { return std::move(texts_); }

 private:
  absl::flat_hash_map<std::string, uint32_t> numbers_;
  nlohmann::ordered_json texts_ = nlohmann::ordered_json::array();
};

}  // namespace ftc
