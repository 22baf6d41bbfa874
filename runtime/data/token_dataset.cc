#include "runtime/data/token_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/memory/memory.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian and read in place");

constexpr size_t kLlmcHeaderBytes = 256 * sizeof(int32_t);
constexpr int32_t kLlmcMagic = 20240520;
constexpr int32_t kLlmcVersion = 1;
constexpr int32_t kLlmcMagic32 = 20240801;  // llm.c's files of uint32 tokens (Llama 3)

constexpr std::pair<std::string_view, DataFormat> kFormats[] = {{"auto", DataFormat::kAuto},
                                                                {"text", DataFormat::kText},
                                                                {"llmc", DataFormat::kLlmc},
                                                                {"u16", DataFormat::kU16}};

int32_t HeaderWord(absl::Span<const uint8_t> bytes, size_t index) {
  int32_t word;
  std::memcpy(&word, bytes.data() + index * sizeof(word), sizeof(word));
  return word;
}

DataFormat Recognise(std::string_view path, absl::Span<const uint8_t> bytes) {
  const bool has_header = bytes.size() >= kLlmcHeaderBytes;
  if (has_header && (HeaderWord(bytes, 0) == kLlmcMagic || HeaderWord(bytes, 0) == kLlmcMagic32)) {
    return DataFormat::kLlmc;
  }
  return path.ends_with(".u16") || path.ends_with(".bin") ? DataFormat::kU16 : DataFormat::kText;
}

// Where the tokens lie in a file, and how many there are.
struct TokenArea {
  const uint8_t* data;
  int64_t count;
};

absl::StatusOr<TokenArea> LlmcTokens(const std::string& path, absl::Span<const uint8_t> bytes) {
  if (bytes.size() < kLlmcHeaderBytes) {
    return absl::DataLossError(fmt::format("'{}' has {} bytes, less than the {} of an llm.c header", path,
                                           bytes.size(), kLlmcHeaderBytes));
  }
  const int32_t magic = HeaderWord(bytes, 0), version = HeaderWord(bytes, 1), count = HeaderWord(bytes, 2);
  if (magic == kLlmcMagic32) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is an llm.c file of uint32 tokens; only those of uint16 tokens are read", path));
  }
  if (magic != kLlmcMagic) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no llm.c token file: it begins with {} instead of {}", path, magic, kLlmcMagic));
  }
  if (version != kLlmcVersion) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}' has version {} of llm.c's format; only version {} is read", path, version, kLlmcVersion));
  }
  const size_t held = bytes.size() - kLlmcHeaderBytes;
  if (count < 0 || held != static_cast<size_t>(count) * 2) {
    return absl::DataLossError(fmt::format(
        "'{}' is truncated or damaged: its header promises {} tokens, {} bytes follow it, enough for {}",
        path, count, held, held / 2));
  }
  return TokenArea{bytes.data() + kLlmcHeaderBytes, count};
}

absl::StatusOr<TokenArea> FindTokens(const MappedFile& file, DataFormat format) {
  const absl::Span<const uint8_t> bytes = file.bytes();
  if (format == DataFormat::kLlmc) return LlmcTokens(file.path(), bytes);
  if (format == DataFormat::kText) return TokenArea{bytes.data(), static_cast<int64_t>(bytes.size())};
  if (bytes.size() % 2 != 0) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' has an odd size, {} bytes, so it does not hold uint16 tokens; if it is text, say "
                    "--data-format=text",
                    file.path(), bytes.size()));
  }
  return TokenArea{bytes.data(), static_cast<int64_t>(bytes.size() / 2)};
}

// The first token that is not below vocab_size. Looks at blocks whole (their maximum vectorises) and into one
// only when it holds such a token.
template <typename T>
absl::Status CheckVocabulary(const std::string& path, const T* tokens, int64_t count, int64_t vocab_size) {
  if (vocab_size > std::numeric_limits<T>::max()) return absl::OkStatus();
  constexpr int64_t kBlock = 1 << 16;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(count, begin + kBlock);
    T highest = 0;
    for (int64_t i = begin; i < end; ++i) highest = std::max(highest, tokens[i]);
    if (highest < vocab_size) continue;
    const T* bad = std::find_if(tokens + begin, tokens + end, [&](T token) { return token >= vocab_size; });
    return absl::InvalidArgumentError(
        fmt::format("'{}': token {} has the value {}, outside the model's vocabulary of {} (0 ... {})", path,
                    bad - tokens, *bad, vocab_size, vocab_size - 1));
  }
  return absl::OkStatus();
}

template <typename T>
void Widen(const uint8_t* data, int64_t first, int64_t count, int32_t* out) {
  const T* tokens = reinterpret_cast<const T*>(data) + first;
  for (int64_t i = 0; i < count; ++i) out[i] = tokens[i];
}

}  // namespace

absl::StatusOr<DataFormat> ParseDataFormat(std::string_view word) {
  for (const auto& [name, format] : kFormats) {
    if (name == word) return format;
  }
  return absl::InvalidArgumentError(
      fmt::format("unknown data format '{}'; choose auto, text, llmc or u16", word));
}

std::string_view Name(DataFormat format) {
  for (const auto& [name, value] : kFormats) {
    if (value == format) return name;
  }
  return "?";
}

TokenDataset::TokenDataset(MappedFile file, DataFormat format, const uint8_t* tokens, int64_t num_tokens,
                           int64_t seq_len)
    : file_(std::move(file)),
      format_(format),
      tokens_(tokens),
      num_tokens_(num_tokens),
      seq_len_(seq_len),
      num_sequences_((num_tokens - 1) / seq_len) {}

void TokenDataset::ReadSequence(int64_t index, int32_t* inputs, int32_t* targets) const {
  const int64_t first = index * seq_len_;
  if (format_ == DataFormat::kText) {
    Widen<uint8_t>(tokens_, first, seq_len_, inputs);
    Widen<uint8_t>(tokens_, first + 1, seq_len_, targets);
  } else {
    Widen<uint16_t>(tokens_, first, seq_len_, inputs);
    Widen<uint16_t>(tokens_, first + 1, seq_len_, targets);
  }
}

absl::StatusOr<std::unique_ptr<TokenDataset>> OpenDataset(const std::string& path, int64_t vocab_size,
                                                          int64_t seq_len, DataFormat format) {
  if (vocab_size < 1 || seq_len < 1) {
    return absl::InvalidArgumentError(
        fmt::format("vocabulary size {} and sequence length {} must be positive", vocab_size, seq_len));
  }
  FT_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path, MappedFile::Access::kNormal));
  if (file.bytes().empty()) return absl::InvalidArgumentError(fmt::format("'{}' is empty", path));
  if (format == DataFormat::kAuto) format = Recognise(path, file.bytes());
  FT_ASSIGN_OR_RETURN(const TokenArea area, FindTokens(file, format));
  if (area.count <= seq_len) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}' is too short: it holds {} tokens (format {}), and one sequence of length {} needs {}", path,
        area.count, Name(format), seq_len, seq_len + 1));
  }
  FT_RETURN_IF_ERROR(
      format == DataFormat::kText
          ? CheckVocabulary(path, area.data, area.count, vocab_size)
          : CheckVocabulary(path, reinterpret_cast<const uint16_t*>(area.data), area.count, vocab_size));
  return absl::WrapUnique(new TokenDataset(std::move(file), format, area.data, area.count, seq_len));
}

}  // namespace ft
