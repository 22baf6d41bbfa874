#include "runtime/checkpoint/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "runtime/base/glob.h"
#include "runtime/base/stored_parts.h"
#include "runtime/checkpoint/safetensors_header.h"
#include "runtime/checkpoint/unused_tensors.h"

namespace ft {
namespace {

using Entry = SafetensorsReader::Entry;

// What base models of Hugging Face are called inside their full ones, e.g. GPT2Model in GPT2LMHeadModel.
constexpr std::string_view kBasePrefixes[] = {"transformer.", "model."};

std::string Files(const SafetensorsReader& reader) {
  const size_t others = reader.files().size() - 1;
  const std::string& first = reader.files().front().path();
  return others == 0 ? fmt::format("'{}'", first) : fmt::format("'{}' and {} more files", first, others);
}

bool SameTensor(const Entry& a, const Entry& b) {
  return a.dtype == b.dtype && a.shape == b.shape &&
         std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end());
}

// All entries under the tensor's names, its own name's first.
std::vector<const Entry*> FindAll(const SafetensorsReader& reader, const WantedTensor& wanted) {
  std::vector<const Entry*> found;
  auto add = [&](const std::string& name) {
    const Entry* entry = reader.Find(name);
    if (entry != nullptr && std::find(found.begin(), found.end(), entry) == found.end())
      found.push_back(entry);
  };
  add(wanted.name);
  for (const std::string& alias : wanted.aliases) add(alias);
  return found;
}

std::string FaultOf(const SafetensorsReader& reader, const Entry& entry, const std::vector<int64_t>& shape) {
  if (entry.shape != shape) {
    return fmt::format("'{}': tensor '{}' has the shape {}, the model's has {}", reader.FileOf(entry),
                       entry.name, ShapeText(entry.shape), ShapeText(shape));
  }
  if (!IsReadableAsF32(entry.dtype)) {
    return fmt::format("'{}': tensor '{}' is of dtype {}; F32, F16, BF16 and F64 can be used",
                       reader.FileOf(entry), entry.name, Name(entry.dtype));
  }
  return "";
}

// What is wrong with the entries found for a tensor; empty when nothing is.
std::string Fault(const SafetensorsReader& reader, const WantedTensor& wanted,
                  const std::vector<const Entry*>& found) {
  if (found.empty()) {
    if (wanted.may_be_missing) return "";
    const std::string also =
        wanted.aliases.empty() ? "" : fmt::format(" (nor '{}')", fmt::join(wanted.aliases, "', '"));
    return fmt::format("{} has no tensor '{}'{}", Files(reader), wanted.name, also);
  }
  for (const Entry* entry : found) {
    if (std::string fault = FaultOf(reader, *entry, wanted.shape); !fault.empty()) return fault;
    if (!SameTensor(*found.front(), *entry)) {
      return fmt::format("{}: tensors '{}' and '{}' are one in the model but differ", Files(reader),
                         found.front()->name, entry->name);
    }
  }
  return "";
}

// The entries of a tensor's parts, as many as are there, and what is wrong with them.
struct FoundParts {
  std::vector<const Entry*> entries;
  std::string fault;
};

FoundParts FindParts(const SafetensorsReader& reader, const WantedTensor& wanted) {
  FoundParts found;
  const absl::StatusOr<std::vector<StoredPart>> parts = StoredParts(wanted.stored_as, wanted.shape);
  if (!parts.ok()) {
    found.fault = std::string(parts.status().message());
    return found;
  }
  for (const StoredPart& part : *parts) {
    const Entry* entry = reader.Find(part.name);
    if (entry != nullptr) found.entries.push_back(entry);
    if (!found.fault.empty()) continue;
    found.fault = entry == nullptr ? fmt::format("{} has no tensor '{}'", Files(reader), part.name)
                                   : FaultOf(reader, *entry, part.shape);
  }
  return found;
}

bool Matches(const std::string& name, absl::Span<const std::string> globs) {
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& g) { return MatchesGlob(g, name); });
}

// Tensors of the checkpoint that are not in `used`: a problem, or a note where that is allowed.
void FindUnused(const SafetensorsReader& reader, const absl::flat_hash_set<const Entry*>& used,
                absl::Span<const std::string> allow_unused, WeightMatch& match) {
  std::vector<std::string> unused, allowed;
  for (const Entry& entry : reader.entries()) {
    if (used.contains(&entry)) continue;
    if (Matches(entry.name, allow_unused)) {
      allowed.push_back(entry.name);
    } else if (!IsIgnoredBuffer(entry.name)) {
      unused.push_back(entry.name);
    }
  }
  const auto text = [&](const std::vector<std::string>& names) {
    return fmt::format("{} tensor{} of {}", names.size(), names.size() == 1 ? "" : "s", Files(reader));
  };
  if (!unused.empty()) {
    match.problems.push_back(
        fmt::format("{} {} no place in the model: {} (--allow-unused=GLOB leaves tensors out on purpose)",
                    text(unused), unused.size() == 1 ? "has" : "have", NamesText(unused)));
  }
  if (!allowed.empty())
    match.note = fmt::format("{} left out as --allow-unused says: {}", text(allowed), NamesText(allowed));
}

}  // namespace

std::vector<std::string> HuggingFaceAliases(std::string_view name) {
  for (std::string_view prefix : kBasePrefixes) {
    if (name.starts_with(prefix) && name.size() > prefix.size())
      return {std::string(name.substr(prefix.size()))};
  }
  return {};
}

WeightMatch MatchWeights(const SafetensorsReader& reader, absl::Span<const WantedTensor> wanted,
                         absl::Span<const std::string> allow_unused) {
  WeightMatch match;
  absl::flat_hash_set<const Entry*> used;
  size_t faults = 0;
  for (const WantedTensor& tensor : wanted) {
    std::vector<const Entry*> found = FindAll(reader, tensor);
    FoundParts parts;
    if (found.empty()) parts = FindParts(reader, tensor);
    const bool in_parts = !parts.entries.empty();
    std::string fault = in_parts ? std::move(parts.fault) : Fault(reader, tensor, found);
    if (in_parts) found = std::move(parts.entries);
    // A tensor of another shape is no left-over one.
    used.insert(found.begin(), found.end());
    if (!in_parts && found.size() > 1) found.resize(1);
    match.entries.push_back(fault.empty() ? std::move(found) : std::vector<const Entry*>());
    if (!fault.empty() && faults++ == 0) match.problems.push_back(std::move(fault));
  }
  if (faults > 1) {
    match.problems.front() +=
        fmt::format(" (and {} more tensor{} not fit)", faults - 1, faults == 2 ? " does" : "s do");
  }
  FindUnused(reader, used, allow_unused, match);
  return match;
}

}  // namespace ft
