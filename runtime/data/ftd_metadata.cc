#include "runtime/data/ftd_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "runtime/base/content_hash.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

constexpr std::string_view kFormat = "format", kVersion = "version", kHashPrefix = "xxh64.";
constexpr std::string_view kHeaderHash = "xxh64.header";
constexpr size_t kHashDigits = 16;
constexpr int64_t kMaxVocabulary = int64_t{1} << 31;  // tokens are int32 in a step

constexpr std::pair<std::string_view, FtdKind> kKinds[] = {
    {"text", FtdKind::kText}, {"conversations", FtdKind::kConversations}, {"sequences", FtdKind::kSequences}};

// The values of a file by their keys.
class Values {
 public:
  Values(const HeaderMetadata& metadata, const std::string& path) : path_(path) {
    for (const auto& [key, value] : metadata) {
      if (!values_.emplace(key, value).second && twice_.empty()) twice_ = key;
    }
  }

  absl::Status CheckOnce() const {
    return twice_.empty() ? absl::OkStatus() : Invalid(twice_, "is said twice");
  }

  template <typename... Args>
  absl::Status Invalid(std::string_view key, fmt::format_string<Args...> format, Args&&... args) const {
    return absl::InvalidArgumentError(fmt::format("'{}': {} of its header {}", path_, Quote(key),
                                                  fmt::format(format, std::forward<Args>(args)...)));
  }

  const std::string* Find(std::string_view key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
  }

  absl::StatusOr<std::string> Text(std::string_view key) const {
    const std::string* value = Find(key);
    if (value == nullptr) return Invalid(key, "is missing");
    return *value;
  }

  // A decimal number from `least` to `most`, as it is written without leading zeros.
  absl::StatusOr<int64_t> Whole(std::string_view key, int64_t least, int64_t most) const {
    FT_ASSIGN_OR_RETURN(const std::string text, Text(key));
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || fmt::format("{}", value) != text ||
        value < least || value > most)
      return Invalid(key, "is {}, no whole number from {} to {}", Quote(text), least, most);
    return value;
  }

  // A token; nothing where there is none.
  absl::StatusOr<std::optional<int64_t>> Token(std::string_view key, int64_t vocabulary_size) const {
    if (Find(key) == nullptr) return std::nullopt;
    FT_ASSIGN_OR_RETURN(const int64_t token, Whole(key, 0, vocabulary_size - 1));
    return token;
  }

  absl::StatusOr<uint64_t> Hash(std::string_view key) const {
    FT_ASSIGN_OR_RETURN(const std::string text, Text(key));
    if (!IsHash(text)) return Invalid(key, "is {}, no 16 hexadecimal digits", Quote(text));
    uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value, 16);
    return value;
  }

  const std::map<std::string, std::string, std::less<>>& all() const { return values_; }

 private:
  const std::string& path_;
  std::map<std::string, std::string, std::less<>> values_;
  std::string twice_;
};

absl::Status CheckFormat(const Values& values, const std::string& path) {
  const std::string* format = values.Find(kFormat);
  if (format == nullptr || *format != "ftd") {
    return absl::InvalidArgumentError(fmt::format(
        "'{}' is no .ftd file: its header has no \"format\":\"ftd\"; what ftc tokenize writes is one", path));
  }
  FT_ASSIGN_OR_RETURN(const std::string version, values.Text(kVersion));
  if (version == "1") return absl::OkStatus();
  return values.Invalid(kVersion, "is {}; this program reads version 1 of the format", Quote(version));
}

// The header's hash is of its text with zeros in the place of this hash.
absl::Status CheckHeaderHash(const Values& values, std::string_view header, const std::string& path) {
  FT_ASSIGN_OR_RETURN(const uint64_t said, values.Hash(kHeaderHash));
  const std::string before = fmt::format("\"{}\":\"", kHeaderHash);
  const size_t at = header.find(before);
  if (at == std::string_view::npos || header.find(before, at + 1) != std::string_view::npos ||
      header.substr(at + before.size(), kHashDigits) != *values.Find(kHeaderHash))
    return values.Invalid(kHeaderHash, "is not written as {}16 digits\"", before);
  std::string text(header);
  text.replace(at + before.size(), kHashDigits, kHashDigits, '0');
  const uint64_t found = ContentHashOf({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  if (found == said) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("'{}' is damaged: its header has the hash {:016x}, but says {:016x}", path, found, said));
}

absl::StatusOr<FtdKind> KindOf(const Values& values) {
  FT_ASSIGN_OR_RETURN(const std::string kind, values.Text("kind"));
  for (const auto& [name, known] : kKinds) {
    if (name == kind) return known;
  }
  return values.Invalid("kind", "is {}, neither text nor conversations nor sequences", Quote(kind));
}

absl::StatusOr<std::string> TokenizerHashOf(const Values& values) {
  FT_ASSIGN_OR_RETURN(std::string hash, values.Text("tokenizer_hash"));
  if (!hash.empty()) FT_RETURN_IF_ERROR(values.Hash("tokenizer_hash").status());
  return hash;
}

}  // namespace

bool IsHash(std::string_view text) {
  return text.size() == kHashDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool IsFtdMetadata(const HeaderMetadata& metadata) {
  return std::find(metadata.begin(), metadata.end(), std::pair<std::string, std::string>(kFormat, "ftd")) !=
         metadata.end();
}

absl::StatusOr<FtdMetadata> ReadFtdMetadata(const HeaderMetadata& metadata, std::string_view header,
                                            const std::string& path) {
  const Values values(metadata, path);
  FT_RETURN_IF_ERROR(CheckFormat(values, path));
  FT_RETURN_IF_ERROR(values.CheckOnce());
  FT_RETURN_IF_ERROR(CheckHeaderHash(values, header, path));
  FtdMetadata read;
  FT_ASSIGN_OR_RETURN(read.kind, KindOf(values));
  FT_ASSIGN_OR_RETURN(read.vocabulary_size, values.Whole("vocabulary_size", 1, kMaxVocabulary));
  FT_ASSIGN_OR_RETURN(read.counted, values.Whole("counted", 0, INT64_MAX));
  FT_ASSIGN_OR_RETURN(read.tokenizer_hash, TokenizerHashOf(values));
  FT_ASSIGN_OR_RETURN(read.bos, values.Token("bos_token", read.vocabulary_size));
  FT_ASSIGN_OR_RETURN(read.eos, values.Token("eos_token", read.vocabulary_size));
  FT_ASSIGN_OR_RETURN(read.pad, values.Token("pad_token", read.vocabulary_size));
  for (const auto& [key, text] : values.all()) {
    if (!key.starts_with(kHashPrefix) || key == kHeaderHash) continue;
    FT_ASSIGN_OR_RETURN(read.hashes[key.substr(kHashPrefix.size())], values.Hash(key));
  }
  return read;
}

}  // namespace ft
