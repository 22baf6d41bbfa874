// How figures of target files are read: numbers within bounds, texts that nobody reads.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "fmt/format.h"
#include "runtime/base/printable.h"
#include "tools/ftc/config/target_figures.h"

namespace ftc::figure {

using Names = std::vector<std::string>;

struct Bounds {
  double low, high;
  bool whole = false;
};

inline std::string ReadFigure(const std::string& text, const Bounds& bounds, double& value) {
  const bool read = absl::SimpleAtod(text, &value) && value >= bounds.low && value <= bounds.high;
  if (read && (!bounds.whole || value == std::floor(value))) return "";
  return fmt::format("'{}' is not a {}number of at least {} and at most {}", text,
                     bounds.whole ? "whole " : "", bounds.low, bounds.high);
}

// A number times `unit`, as a field that `field` gives.
template <typename Field>
Figure Scaled(std::string key, Figure::Needed needed, double unit, Bounds bounds, Field field) {
  return {std::move(key), needed, [=](const Names&, const std::string& text, ft::Target& target) {
            double value = 0;
            std::string mistake = ReadFigure(text, bounds, value);
            if (mistake.empty()) field(target, value * unit);
            return mistake;
          }};
}

// A text that messages have: one line of at most kLongestTargetName bytes.
inline std::string CheckPrinted(const std::string& text) {
  if (text.size() > ft::kLongestTargetName)
    return fmt::format("wants at most {} bytes, not {}", ft::kLongestTargetName, text.size());
  if (ft::Printable(text) == text && text.find_first_of("\n\t") == text.npos) return "";
  return fmt::format("{} has control characters or ends of lines, which names cannot have", ft::Quote(text));
}

// A name that says a number is spelled in one way, so that two keys of a file are never the same thing.
inline std::string CheckSpelling(const std::string& name, const std::string& usual) {
  return name == usual ? "" : fmt::format("the key {} is written {}", ft::Quote(name), ft::Quote(usual));
}

// For who reads the file.
inline Figure Text(std::string key) {
  return {std::move(key), Figure::Needed::kNo,
          [](const Names&, const std::string&, ft::Target&) { return std::string(); }};
}

inline constexpr double kTera = 1e12, kGiga = 1e9, kMicro = 1e-6, kMebi = 1 << 20;
// Within what VerifyTarget takes.
inline constexpr Bounds kFlops{.low = 1e-6, .high = 1e5};  // 10^12 a second
inline constexpr Bounds kRate{.low = 1e-9, .high = 1e6};   // 10^9 bytes a second
inline constexpr Bounds kLatency{.low = 0, .high = 1e6};   // 10^-6 s
inline constexpr Bounds kTaken{.low = 1e-6, .high = 1e9};  // 10^-6 s, of a kernel
inline constexpr Bounds kCount{.low = 1, .high = 1024, .whole = true};
inline constexpr Bounds kMemory{.low = 1, .high = 1e9, .whole = true};
inline constexpr Bounds kBeside{.low = 0, .high = 1e9, .whole = true};
inline constexpr Bounds kPart{.low = 0.001, .high = 1};
inline constexpr Bounds kLonger{.low = 0, .high = 10};
inline constexpr Bounds kTimes{.low = 0, .high = 1000};
inline constexpr Bounds kExtent{.low = 1, .high = 65536, .whole = true};
inline constexpr Bounds kNone{.low = 0, .high = 65536, .whole = true};
inline constexpr Bounds kMebibytes{.low = 1e-6, .high = 1e9};

}  // namespace ftc::figure
