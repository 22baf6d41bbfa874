#include "runtime/checkpoint/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/config_families.h"
#include "runtime/checkpoint/config_reader.h"

namespace ft {
namespace {

using nlohmann::json;

constexpr size_t kMaxBytes = size_t{16} << 20;
constexpr int kMaxDepth = 32;
constexpr size_t kShownFaults = 8;

absl::StatusOr<json> ParseObject(const std::string& path, absl::Span<const uint8_t> bytes) {
  const auto invalid = [&](std::string_view what) {
    return absl::InvalidArgumentError(fmt::format("'{}' {}", path, what));
  };
  if (bytes.size() > kMaxBytes)
    return invalid(fmt::format("has {} bytes; a config.json has {} at most", bytes.size(), kMaxBytes));
  // For nlohmann's parser a text ends at its first NUL.
  if (const auto nul = std::find(bytes.begin(), bytes.end(), 0); nul != bytes.end())
    return invalid(fmt::format("is not valid JSON at byte {}", nul - bytes.begin()));
  bool too_deep = false;
  const auto bound_depth = [&](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return depth <= kMaxDepth;
  };
  json value;
  try {
    value = json::parse(bytes.begin(), bytes.end(), bound_depth);
  } catch (const json::parse_error& error) {
    return invalid(fmt::format("is not valid JSON at byte {}", error.byte > 0 ? error.byte - 1 : 0));
  } catch (const json::exception&) {
    return invalid("is not valid JSON: it has a number that is too large");
  }
  if (too_deep) return invalid(fmt::format("nests deeper than {}; no config.json does", kMaxDepth));
  if (!value.is_object()) return invalid("is no JSON object");
  return value;
}

// Another class than those of the family has another head, and other weights.
void CheckArchitecture(ConfigReader& reader, const ConfigFamily& family) {
  const auto classes = reader.Texts("architectures");
  if (!classes.has_value() || classes->empty() || family.architectures.empty()) return;
  if (std::ranges::find(family.architectures, classes->front()) == family.architectures.end())
    reader.Fault(fmt::format("architectures is {}; models of {} are built", QuotedText(classes->front()),
                             fmt::join(family.architectures, " and ")));
}

absl::Status Faulty(const std::string& path, const std::vector<std::string>& faults) {
  const size_t shown = std::min(faults.size(), kShownFaults);
  return absl::InvalidArgumentError(fmt::format("'{}': {}{}", path,
                                                fmt::join(faults.begin(), faults.begin() + shown, "; "),
                                                shown < faults.size() ? "; ..." : ""));
}

}  // namespace

absl::StatusOr<json> ReadConfigObject(const std::string& path) {
  FT_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path, MappedFile::Access::kSequential));
  return ParseObject(path, file.bytes());
}

std::string KnownFamilies() {
  std::string names;
  for (const ConfigFamily& family : ConfigFamilies())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", family.model_type);
  return names;
}

absl::StatusOr<ModelFacts> ReadConfigFile(const std::string& path) {
  FT_ASSIGN_OR_RETURN(const json config, ReadConfigObject(path));
  const auto type = config.find("model_type");
  if (type == config.end() || !type->is_string()) return Faulty(path, {"it does not say its model_type"});
  const ConfigFamily* family = FindConfigFamily(type->get<std::string>());
  if (family == nullptr)
    return Faulty(path, {fmt::format("model_type is {}, which is not known; known are {}", JsonText(*type),
                                     KnownFamilies())});
  ConfigReader reader(config, type->get<std::string>());
  family->read(reader);
  CheckArchitecture(reader, *family);
  if (reader.facts().causal && !reader.Flag("is_causal").value_or(true))
    reader.Fault("is_causal is false, which is not understood");
  std::vector<std::string> faults = reader.TakeFaults();
  if (!faults.empty()) return Faulty(path, faults);
  for (const FactField& field : FactFields()) {
    if (!reader.Knows(field.member))
      return Faulty(path, {fmt::format("it does not say {}; architectures should be one of {}", field.name,
                                       fmt::join(family->architectures, ", "))});
  }
  if (std::string error = CheckFacts(reader.facts()); !error.empty()) return Faulty(path, {error});
  return reader.facts();
}

}  // namespace ft
