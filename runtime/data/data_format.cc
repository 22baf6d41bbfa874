#include "runtime/data/data_format.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/data/file_kind.h"
#include "runtime/data/token_width.h"

namespace ft {
namespace {

using Bytes = absl::Span<const uint8_t>;

constexpr std::pair<std::string_view, DataFormat> kFormats[] = {
    {"auto", DataFormat::kAuto}, {"text", DataFormat::kText}, {"llmc", DataFormat::kLlmc},
    {"u16", DataFormat::kU16},   {"u32", DataFormat::kU32},   {"megatron", DataFormat::kMegatron},
    {"ftd", DataFormat::kFtd},   {"npy", DataFormat::kNpy},   {"safetensors", DataFormat::kSafetensors}};
constexpr int64_t kByteVocabulary = 256;
constexpr std::string_view kOrText = "or say --data-format=text to train on its bytes as they are";

std::string_view TextOf(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// What a name says; kText says nothing.
DataFormat FormatOfName(std::string_view path) {
  if (path.ends_with(".u32")) return DataFormat::kU32;
  return path.ends_with(".u16") || path.ends_with(".bin") ? DataFormat::kU16 : DataFormat::kText;
}

bool IsJsonName(std::string_view path) {
  return path.ends_with(".jsonl") || path.ends_with(".ndjson") || path.ends_with(".json");
}

absl::Status Refuse(std::string_view path, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("'{}' {}", path, why));
}

// Integers under a name that says so.
absl::Status CheckTokens(const std::string& path, Bytes bytes, DataFormat format, int64_t vocab_size) {
  const int width = format == DataFormat::kU32 ? 4 : 2;
  if (IsPlainText(bytes)) {
    return Refuse(path, fmt::format("is named as a file of {} tokens but is text; tokenize it, or say "
                                    "--data-format=text to train on its bytes",
                                    LayoutText({.bytes = width})));
  }
  const IntegerLayout layout = GuessLayout(bytes, width, vocab_size);
  if (layout == IntegerLayout{.bytes = width}) return absl::OkStatus();
  const bool readable = layout == IntegerLayout{.bytes = 4};
  return Refuse(
      path, fmt::format(
                "does not hold {0} tokens, as its name has it, but {1}, by its upper halves; {2}, "
                "or --data-format={3} if they are {0} all the same",
                LayoutText({.bytes = width}), LayoutText(layout),
                readable ? "say --data-format=u32" : "write them as little-endian uint32 (--data-format=u32)",
                Name(format)));
}

// The byte at `position` is none of text.
absl::Status RefuseBinary(const std::string& path, Bytes bytes, int64_t position, int64_t vocab_size) {
  if (GuessLayout(bytes, 2, vocab_size) == IntegerLayout{.bytes = 4})
    return Refuse(path, "holds uint32 tokens, by its upper halves; name it .u32 or say --data-format=u32");
  if (UpperHalvesAreZero(bytes, 1, false) || UpperHalvesAreZero(bytes, 1, true)) {
    return Refuse(path,
                  "has 0 for every other byte: text in UTF-16 has to be converted (iconv -t UTF-8), uint16 "
                  "tokens are named .u16 or said to be such by --data-format=u16");
  }
  return Refuse(path, fmt::format("is neither text (byte {} is {}) nor named as tokens; for these say "
                                  "--data-format=u16 or u32, {}",
                                  position, bytes[static_cast<size_t>(position)], kOrText));
}

absl::Status CheckText(const std::string& path, Bytes bytes, int64_t vocab_size) {
  if (TextOf(bytes).starts_with("\xff\xfe") || TextOf(bytes).starts_with("\xfe\xff"))
    return Refuse(path, "is text in UTF-16; convert it (iconv -t UTF-8)");
  if (IsJsonName(path) || BeginsWithJsonRecord(TextOf(bytes)))
    return Refuse(path, fmt::format("holds JSON, whose text has to be taken out of it; do so, {}", kOrText));
  if (const int64_t position = FindBinary(bytes); position >= 0)
    return RefuseBinary(path, bytes, position, vocab_size);
  if (vocab_size == kByteVocabulary) return absl::OkStatus();
  return Refuse(path,
                fmt::format("is taken for text, a byte a token, but the model's vocabulary is {}, not {}; "
                            "tokenize it (.bin and .u16 name uint16 tokens, .u32 uint32 ones), {}",
                            vocab_size, kByteVocabulary, kOrText));
}

}  // namespace

absl::StatusOr<DataFormat> ParseDataFormat(std::string_view word) {
  for (const auto& [name, format] : kFormats) {
    if (name == word) return format;
  }
  return absl::InvalidArgumentError(fmt::format(
      "unknown data format '{}'; choose auto, text, llmc, u16, u32, megatron, ftd, npy or safetensors",
      word));
}

std::string_view Name(DataFormat format) {
  for (const auto& [name, value] : kFormats) {
    if (value == format) return name;
  }
  return "?";
}

bool HasLlmcMagic(Bytes bytes) {
  int32_t magic = 0;
  if (bytes.size() < sizeof(magic)) return false;
  std::memcpy(&magic, bytes.data(), sizeof(magic));
  return magic == kLlmcMagic16 || magic == kLlmcMagic32;
}

absl::StatusOr<DataFormat> RecogniseFormat(const std::string& path, Bytes bytes, int64_t vocab_size) {
  if (HasLlmcMagic(bytes)) return DataFormat::kLlmc;
  if (const FileKind* kind = FindFileKind(bytes))
    return Refuse(path, fmt::format("is {}, which is not read; {}", kind->name, kind->what_to_do));
  const DataFormat format = FormatOfName(path);
  FT_RETURN_IF_ERROR(format == DataFormat::kText ? CheckText(path, bytes, vocab_size)
                                                 : CheckTokens(path, bytes, format, vocab_size));
  return format;
}

std::string DoubtAbout(const std::string& path, Bytes bytes, DataFormat format, int64_t vocab_size) {
  if (format == DataFormat::kLlmc) return "";  // it has a header
  const auto doubt = [&](std::string_view what) {
    return fmt::format("'{}' is read as --data-format={} has it, but it looks like {}", path, Name(format),
                       what);
  };
  if (HasLlmcMagic(bytes)) return doubt("llm.c's format (--data-format=llmc)");
  if (const FileKind* kind = FindFileKind(bytes)) return doubt(kind->name);
  if (format == DataFormat::kText) return "";
  if (IsPlainText(bytes)) return doubt("text");
  const IntegerLayout given{.bytes = format == DataFormat::kU32 ? 4 : 2};
  const IntegerLayout layout = GuessLayout(bytes, given.bytes, vocab_size);
  return layout == given ? "" : doubt(LayoutText(layout));
}

}  // namespace ft
