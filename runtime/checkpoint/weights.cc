#include "runtime/checkpoint/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "runtime/checkpoint/safetensors_header.h"

namespace ft {
namespace {

using Entry = SafetensorsReader::Entry;

// What base models of Hugging Face are called inside their full ones, e.g. GPT2Model in GPT2LMHeadModel.
constexpr std::string_view kBasePrefixes[] = {"transformer.", "model."};

constexpr size_t kNamesInNote = 5;

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

// What is wrong with the entries found for a tensor; empty when nothing is.
std::string Fault(const SafetensorsReader& reader, const WantedTensor& wanted,
                  const std::vector<const Entry*>& found) {
  if (found.empty()) {
    const std::string also =
        wanted.aliases.empty() ? "" : fmt::format(" (nor '{}')", fmt::join(wanted.aliases, "', '"));
    return fmt::format("{} has no tensor '{}'{}", Files(reader), wanted.name, also);
  }
  for (const Entry* entry : found) {
    if (entry->shape != wanted.shape) {
      return fmt::format("'{}': tensor '{}' has the shape {}, the model's has {}", reader.FileOf(*entry),
                         entry->name, ShapeText(entry->shape), ShapeText(wanted.shape));
    }
    if (!IsReadableAsF32(entry->dtype)) {
      return fmt::format("'{}': tensor '{}' is of dtype {}; F32, F16, BF16 and F64 can be used",
                         reader.FileOf(*entry), entry->name, Name(entry->dtype));
    }
    if (!SameTensor(*found.front(), *entry)) {
      return fmt::format("{}: tensors '{}' and '{}' are one in the model but differ", Files(reader),
                         found.front()->name, entry->name);
    }
  }
  return "";
}

std::string NoteOn(const SafetensorsReader& reader, const std::vector<std::string>& unused) {
  if (unused.empty()) return "";
  const size_t shown = std::min(unused.size(), kNamesInNote);
  return fmt::format("{} tensor{} of {} not used by the model: {}{}", unused.size(),
                     unused.size() == 1 ? "" : "s", Files(reader),
                     fmt::join(unused.begin(), unused.begin() + shown, ", "),
                     shown < unused.size() ? ", ..." : "");
}

}  // namespace

std::vector<std::string> HuggingFaceAliases(std::string_view name) {
  for (std::string_view prefix : kBasePrefixes) {
    if (name.starts_with(prefix) && name.size() > prefix.size())
      return {std::string(name.substr(prefix.size()))};
  }
  return {};
}

absl::StatusOr<WeightMatch> MatchWeights(const SafetensorsReader& reader,
                                         absl::Span<const WantedTensor> wanted) {
  WeightMatch match;
  absl::flat_hash_set<const Entry*> used;
  std::string first_fault;
  size_t faults = 0;
  for (const WantedTensor& tensor : wanted) {
    const std::vector<const Entry*> found = FindAll(reader, tensor);
    std::string fault = Fault(reader, tensor, found);
    if (!fault.empty()) {
      if (faults++ == 0) first_fault = std::move(fault);
      continue;
    }
    match.entries.push_back(found.front());
    used.insert(found.begin(), found.end());
  }
  if (faults > 1)
    first_fault += fmt::format(" (and {} more tensor{} not fit)", faults - 1, faults == 2 ? " does" : "s do");
  if (faults > 0) return absl::InvalidArgumentError(first_fault);
  for (const Entry& entry : reader.entries()) {
    if (!used.contains(&entry)) match.unused.push_back(entry.name);
  }
  match.note = NoteOn(reader, match.unused);
  return match;
}

}  // namespace ft
