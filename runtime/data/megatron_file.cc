#include "runtime/data/megatron_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "runtime/base/checked.h"
#include "runtime/base/content_hash.h"
#include "runtime/base/load_element.h"
#include "runtime/base/status_macros.h"
#include "runtime/data/token_scan.h"

namespace ft {
namespace {

using Bytes = absl::Span<const uint8_t>;
using namespace std::string_view_literals;

constexpr std::string_view kMagic = "MMIDIDX\0\0"sv, kIndexSuffix = ".idx", kTokensSuffix = ".bin";
constexpr int64_t kHead = 9 + 8 + 1 + 8 + 8;  // magic, version, type, sequences, documents

std::string Beside(const std::string& path, std::string_view suffix) {
  return std::filesystem::path(path).replace_extension(suffix).native();
}

bool HasMagic(const std::string& path) {
  std::string begin(kMagic.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  return file.read(begin.data(), static_cast<std::streamsize>(begin.size())) && begin == kMagic;
}

bool IsRegular(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// Bytes of the integers that have this code; 0: they are no tokens.
int WidthOf(uint8_t code) { return code == 1 ? 1 : code == 8 ? 2 : code == 4 ? 4 : 0; }

// What an index says, which `bytes` were found to hold.
struct Index {
  int width = 0;
  int64_t sequences = 0, documents = 0;
  const uint8_t *sizes, *places, *begins;  // int32, int64, int64

  int64_t Size(int64_t i) const { return LoadElement<int32_t>(sizes, i); }
  int64_t Place(int64_t i) const { return LoadElement<int64_t>(places, i); }
  int64_t Begin(int64_t i) const { return LoadElement<int64_t>(begins, i); }
};

class IndexReader {
 public:
  explicit IndexReader(const MappedFile& file) : path_(file.path()), bytes_(file.bytes()) {}

  absl::StatusOr<Index> Read() {
    const auto size = static_cast<int64_t>(bytes_.size());
    if (size < kHead || std::memcmp(bytes_.data(), kMagic.data(), kMagic.size()) != 0)
      return Invalid("is no index of a Megatron data set: it does not begin with MMIDIDX");
    if (const auto version = LoadElement<uint64_t>(bytes_.data() + 9); version != 1)
      return Invalid("is of version {}; only version 1 is read", version);
    Index index;
    index.width = WidthOf(bytes_[17]);
    if (index.width == 0)
      return Invalid("is of integers of type {}; tokens are uint8 (1), int32 (4) or uint16 (8)", bytes_[17]);
    index.sequences = LoadElement<int64_t>(bytes_.data() + 18);
    index.documents = LoadElement<int64_t>(bytes_.data() + 26);
    if (index.sequences < 1 || index.documents < 2)
      return Invalid("says that there are {} sequences in {} documents", index.sequences,
                     index.documents - 1);
    const int64_t needed =
        CheckedAdd(CheckedAdd(kHead, CheckedMul(index.sequences, 12)), CheckedMul(index.documents, 8));
    if (size != needed)
      return absl::DataLossError(
          fmt::format("'{}' has {} bytes, but an index of {} sequences and {} documents has {}; it is cut "
                      "off, or has more "
                      "than tokens",
                      path_, size, index.sequences, index.documents - 1, needed));
    index.sizes = bytes_.data() + kHead;
    index.places = index.sizes + index.sequences * 4;
    index.begins = index.places + index.sequences * 8;
    return index;
  }

  // Sequences lie one after the other, from the first byte to the last, and so do documents among them.
  absl::Status Check(const Index& index, uint64_t token_bytes) const {
    int64_t place = 0;
    for (int64_t i = 0; i < index.sequences; ++i) {
      if (index.Size(i) < 0) return Invalid("says that sequence {} has {} tokens", i, index.Size(i));
      if (index.Place(i) != place)
        return Invalid("says that sequence {} begins at byte {}, but those before it end at {}", i,
                       index.Place(i), place);
      place = CheckedAdd(place, index.Size(i) * index.width);
    }
    if (static_cast<uint64_t>(place) != token_bytes)
      return absl::DataLossError(fmt::format(
          "'{}' describes {} bytes of tokens, but the .bin beside it has {}", path_, place, token_bytes));
    if (index.Begin(0) != 0 || index.Begin(index.documents - 1) != index.sequences)
      return Invalid("has documents from sequence {} to {}, but there are {} sequences", index.Begin(0),
                     index.Begin(index.documents - 1), index.sequences);
    for (int64_t i = 1; i < index.documents; ++i) {
      if (index.Begin(i) < index.Begin(i - 1))
        return Invalid("says that document {} begins at sequence {} and ends at {}", i - 1,
                       index.Begin(i - 1), index.Begin(i));
    }
    return absl::OkStatus();
  }

 private:
  template <typename... Args>
  absl::Status Invalid(fmt::format_string<Args...> format, Args&&... args) const {
    return absl::InvalidArgumentError(
        fmt::format("'{}' {}", path_, fmt::format(format, std::forward<Args>(args)...)));
  }

  const std::string& path_;
  Bytes bytes_;
};

}  // namespace

absl::Status MegatronFile::ReadIndex() {
  IndexReader reader(index_);
  FT_ASSIGN_OR_RETURN(const Index index, reader.Read());
  FT_RETURN_IF_ERROR(reader.Check(index, tokens_.bytes().size()));
  token_bytes_ = index.width;
  documents_ = {0};
  int64_t end = 0;
  for (int64_t document = 0; document + 1 < index.documents; ++document) {
    for (int64_t i = index.Begin(document); i < index.Begin(document + 1); ++i) end += index.Size(i);
    if (static_cast<uint64_t>(end) > documents_.back()) documents_.push_back(static_cast<uint64_t>(end));
  }
  if (end == 0) return absl::InvalidArgumentError(fmt::format("'{}' has no tokens", path()));
  return absl::OkStatus();
}

absl::Status MegatronFile::ReadTokens(int64_t vocab_size) {
  ContentHash hash;
  hash.Update(index_.bytes());
  const int64_t bound = std::min<int64_t>(vocab_size, int64_t{1} << 31);
  const int64_t position = ScanTokens(tokens_.bytes(), token_bytes_, bound, hash);
  content_hash_ = hash.Digest();
  if (position == row().count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("'{}': token {} has the value {}, outside the model's vocabulary of {} (0 ... {})", path(),
                  position, row().Token(position), vocab_size, vocab_size - 1));
}

absl::StatusOr<MegatronFile> MegatronFile::Open(const std::string& path, int64_t vocab_size) {
  using Access = MappedFile::Access;
  FT_ASSIGN_OR_RETURN(MappedFile index, MappedFile::Open(Beside(path, kIndexSuffix), Access::kNormal));
  FT_ASSIGN_OR_RETURN(MappedFile tokens, MappedFile::Open(Beside(path, kTokensSuffix), Access::kNormal));
  MegatronFile file(std::move(index), std::move(tokens));
  FT_RETURN_IF_ERROR(file.ReadIndex());
  FT_RETURN_IF_ERROR(file.ReadTokens(vocab_size));
  return file;
}

bool IsMegatronIndex(const std::string& path) {
  return path.ends_with(kIndexSuffix) && HasMagic(path) && IsRegular(Beside(path, kTokensSuffix));
}

bool IsMegatronFile(const std::string& path) {
  if (path.ends_with(kIndexSuffix)) return HasMagic(path);
  return path.ends_with(kTokensSuffix) && HasMagic(Beside(path, kIndexSuffix));
}

}  // namespace ft
