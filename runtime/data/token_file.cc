#include "runtime/data/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/base/content_hash.h"
#include "runtime/base/load_element.h"
#include "runtime/base/status_macros.h"
#include "runtime/data/file_kind.h"
#include "runtime/data/token_scan.h"
#include "runtime/data/token_width.h"

namespace ft {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian and read in place");

using Bytes = absl::Span<const uint8_t>;

constexpr size_t kLlmcHeaderBytes = 256 * sizeof(int32_t);

struct LlmcKind {
  int32_t magic;
  int32_t version;
  int token_bytes;
};
constexpr LlmcKind kLlmcKinds[] = {{kLlmcMagic16, 1, 2}, {kLlmcMagic32, 7, 4}};

// How the file reads otherwise, where that helps; begins with a separator.
std::string OtherReading(Bytes tokens, int token_bytes, int64_t vocab_size) {
  if (IsPlainText(tokens)) return "; it looks like text (--data-format=text)";
  const IntegerLayout given{.bytes = token_bytes};
  const IntegerLayout other = LayoutThatFits(tokens, token_bytes, vocab_size);
  if (other == given) return "";
  return other.big_endian
             ? fmt::format("; read as {} all are inside it: write them little-endian", LayoutText(other))
             : fmt::format("; read as {0} all are inside it (--data-format=u{1})", LayoutText(other),
                           8 * other.bytes);
}

}  // namespace

absl::StatusOr<TokenFile::TokenArea> TokenFile::LlmcTokens(const MappedFile& file) {
  const Bytes bytes = file.bytes();
  if (bytes.size() < kLlmcHeaderBytes) {
    return absl::DataLossError(fmt::format("'{}' has {} bytes, less than the {} of an llm.c header",
                                           file.path(), bytes.size(), kLlmcHeaderBytes));
  }
  const int32_t magic = LoadElement<int32_t>(bytes.data(), 0),
                version = LoadElement<int32_t>(bytes.data(), 1),
                count = LoadElement<int32_t>(bytes.data(), 2);
  const auto* kind = std::find_if(std::begin(kLlmcKinds), std::end(kLlmcKinds),
                                  [magic](const LlmcKind& known) { return known.magic == magic; });
  if (kind == std::end(kLlmcKinds)) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no llm.c token file: it begins with {} instead of {} or {}", file.path(), magic,
                    kLlmcMagic16, kLlmcMagic32));
  }
  if (version != kind->version) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' has version {} of llm.c's format of {}; only version {} is read", file.path(),
                    version, LayoutText({.bytes = kind->token_bytes}), kind->version));
  }
  const size_t held = bytes.size() - kLlmcHeaderBytes, width = static_cast<size_t>(kind->token_bytes);
  if (count < 0 || held != static_cast<size_t>(count) * width) {
    return absl::DataLossError(fmt::format(
        "'{}' is truncated or damaged: its header promises {} tokens, {} bytes follow it, enough for {}",
        file.path(), count, held, held / width));
  }
  return TokenArea{bytes.data() + kLlmcHeaderBytes, count, kind->token_bytes, true};
}

absl::StatusOr<TokenFile::TokenArea> TokenFile::FindTokens(const MappedFile& file, DataFormat format) {
  if (format == DataFormat::kLlmc) return LlmcTokens(file);
  const Bytes bytes = file.bytes();
  const int width = format == DataFormat::kText ? 1 : format == DataFormat::kU16 ? 2 : 4;
  if (bytes.size() % static_cast<size_t>(width) != 0) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}' has {} bytes, {}, so it does not hold {} tokens; it may be cut off, or be something "
        "else (text: --data-format=text)",
        file.path(), bytes.size(), width == 2 ? "an odd number" : "no multiple of 4",
        LayoutText({.bytes = width})));
  }
  return TokenArea{bytes.data(), static_cast<int64_t>(bytes.size()) / width, width,
                   format == DataFormat::kText};
}

absl::StatusOr<uint64_t> TokenFile::ReadThrough(const MappedFile& file, const TokenArea& area,
                                                int64_t vocab_size) {
  const int64_t bound = std::min<int64_t>(vocab_size, int64_t{1} << 31);  // tokens are int32 in a step
  const auto width = static_cast<size_t>(area.token_bytes);
  const Bytes tokens(area.data, static_cast<size_t>(area.count) * width);
  ContentHash hash;
  hash.Update(file.bytes().first(static_cast<size_t>(area.data - file.bytes().data())));
  const int64_t position = ScanTokens(tokens, area.token_bytes, bound, hash);
  if (position == area.count) return hash.Digest();
  uint32_t value = 0;
  std::memcpy(&value, area.data + position * area.token_bytes, width);
  return absl::InvalidArgumentError(
      fmt::format("'{}': token {} has the value {}, outside the model's vocabulary of {} (0 ... {}){}",
                  file.path(), position, value, vocab_size, vocab_size - 1,
                  area.described ? "" : OtherReading(tokens, area.token_bytes, vocab_size)));
}

TokenFile::TokenFile(MappedFile file, DataFormat format, TokenArea area, uint64_t content_hash,
                     std::string doubt)
    : file_(std::move(file)),
      format_(format),
      area_(area),
      content_hash_(content_hash),
      doubt_(std::move(doubt)) {}

absl::StatusOr<TokenFile> OpenTokenFile(const std::string& path, int64_t vocab_size, DataFormat format) {
  if (vocab_size < 1)
    return absl::InvalidArgumentError(fmt::format("vocabulary size {} must be positive", vocab_size));
  FT_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path, MappedFile::Access::kNormal));
  const Bytes bytes = file.bytes();
  if (bytes.empty()) return absl::InvalidArgumentError(fmt::format("'{}' is empty", path));
  std::string doubt;
  if (format == DataFormat::kAuto) {
    FT_ASSIGN_OR_RETURN(format, RecogniseFormat(path, bytes, vocab_size));
  } else {
    doubt = DoubtAbout(path, bytes, format, vocab_size);
  }
  FT_ASSIGN_OR_RETURN(const TokenFile::TokenArea area, TokenFile::FindTokens(file, format));
  FT_ASSIGN_OR_RETURN(const uint64_t hash, TokenFile::ReadThrough(file, area, vocab_size));
  return TokenFile(std::move(file), format, area, hash, std::move(doubt));
}

}  // namespace ft
