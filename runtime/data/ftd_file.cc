#include "runtime/data/ftd_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <string_view>
#include <utility>

#include "runtime/base/content_hash.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/data/file_kind.h"
#include "runtime/data/ftd_metadata.h"
#include "runtime/data/token_scan.h"
#include "runtime/plan/inputs.h"

namespace ft {

static_assert(std::endian::native == std::endian::little, ".ftd files are little-endian and read in place");

namespace {

using Bytes = absl::Span<const uint8_t>;

constexpr std::string_view kFtdSuffix = ".ftd", kInputPrefix = "input.";
constexpr size_t kDataAlignment = 64;
constexpr int64_t kMaxOfU16 = int64_t{1} << 16;  // entries of the largest vocabulary whose tokens are U16

template <typename T>
absl::Span<const T> As(Bytes bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

int64_t CountBits(Bytes bytes) {
  int64_t count = 0;
  for (const uint8_t byte : bytes) count += std::popcount(byte);
  return count;
}

}  // namespace

// Reads a file step by step; each step may take for granted what those before it have looked at.
class FtdOpener {
 public:
  explicit FtdOpener(MappedFile mapped) : file_(FtdFile(std::move(mapped))) {}

  absl::StatusOr<FtdFile> Open() {
    FT_RETURN_IF_ERROR(ReadHeader());
    FT_RETURN_IF_ERROR(CheckTensors());
    FT_RETURN_IF_ERROR(TakeTokens());
    FT_RETURN_IF_ERROR(ReadThrough());
    FT_RETURN_IF_ERROR(TakeDocuments());
    FT_RETURN_IF_ERROR(TakeMask());
    FT_RETURN_IF_ERROR(TakeVocabulary());
    FT_RETURN_IF_ERROR(TakeInputs());
    return std::move(file_);
  }

 private:
  template <typename... Args>
  absl::Status Invalid(fmt::format_string<Args...> format, Args&&... args) const {
    return absl::InvalidArgumentError(
        fmt::format("'{}': {}", file_.path(), fmt::format(format, std::forward<Args>(args)...)));
  }

  absl::Status ReadHeader() {
    const Bytes all = file_.file_.bytes();
    FT_ASSIGN_OR_RETURN(const std::string_view header, SafetensorsHeaderText(all, file_.path()));
    data_ = all.subspan(sizeof(uint64_t) + header.size());
    HeaderMetadata metadata;
    FT_ASSIGN_OR_RETURN(tensors_, ParseSafetensorsHeader(header, data_.size(), file_.path(), &metadata));
    FT_ASSIGN_OR_RETURN(metadata_, ReadFtdMetadata(metadata, header, file_.path()));
    if ((all.size() - data_.size()) % kDataAlignment != 0)
      return Invalid("its data begins at byte {}, no multiple of {}", all.size() - data_.size(),
                     kDataAlignment);
    file_.kind_ = metadata_.kind;
    file_.vocabulary_size_ = metadata_.vocabulary_size;
    file_.tokenizer_hash_ = metadata_.tokenizer_hash;
    file_.bos_ = metadata_.bos;
    file_.eos_ = metadata_.eos;
    file_.pad_ = metadata_.pad;
    return absl::OkStatus();
  }

  // That tensors are aligned, those of the format, and have a hash each.
  absl::Status CheckTensors() {
    constexpr std::string_view kKnown[] = {"documents",          "tokens",           "loss_mask",
                                           "vocabulary.offsets", "vocabulary.bytes", "vocabulary.special"};
    for (const HeaderTensor& tensor : tensors_) {
      if (std::find(std::begin(kKnown), std::end(kKnown), tensor.name) == std::end(kKnown) &&
          !tensor.name.starts_with(kInputPrefix))
        return Invalid("tensor {} is none of the format's (another input of a model is called input.NAME)",
                       Quote(tensor.name));
      if (tensor.begin % SizeOf(tensor.dtype) != 0)
        return Invalid("tensor {} is {}, but begins at byte {} of the data", Quote(tensor.name),
                       Name(tensor.dtype), tensor.begin);
      if (!metadata_.hashes.contains(tensor.name))
        return Invalid("its header has no hash of tensor {}", Quote(tensor.name));
    }
    for (const auto& [name, hash] : metadata_.hashes) {
      if (Find(name) == nullptr)
        return Invalid("its header has a hash of tensor {}, which it does not hold", Quote(name));
    }
    return absl::OkStatus();
  }

  const HeaderTensor* Find(std::string_view name) const {
    const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                    [name](const HeaderTensor& tensor) { return tensor.name == name; });
    return found == tensors_.end() ? nullptr : &*found;
  }

  Bytes BytesOf(const HeaderTensor& tensor) const {
    return data_.subspan(tensor.begin, tensor.end - tensor.begin);
  }

  // A tensor of one dimension, of `count` elements unless that is negative.
  absl::StatusOr<Bytes> Row(std::string_view name, SafetensorsDType dtype, int64_t count = -1) const {
    const HeaderTensor* tensor = Find(name);
    if (tensor == nullptr) return Invalid("it has no tensor '{}'", name);
    if (tensor->dtype != dtype || tensor->shape.size() != 1 || (count >= 0 && tensor->shape[0] != count))
      return Invalid("tensor '{}' is {} {} instead of {} [{}]", name, Name(tensor->dtype),
                     ShapeText(tensor->shape), Name(dtype), count < 0 ? "n" : fmt::format("{}", count));
    return BytesOf(*tensor);
  }

  absl::Status TakeTokens() {
    const bool narrow = file_.vocabulary_size_ <= kMaxOfU16;
    FT_ASSIGN_OR_RETURN(const Bytes tokens,
                        Row("tokens", narrow ? SafetensorsDType::kU16 : SafetensorsDType::kU32));
    file_.token_bytes_ = narrow ? 2 : 4;
    file_.token_data_ = tokens.data();
    file_.num_tokens_ = static_cast<int64_t>(tokens.size()) / file_.token_bytes_;
    if (file_.num_tokens_ == 0) return Invalid("it has no tokens");
    return absl::OkStatus();
  }

  // In one pass: all hashes, and whether tokens are inside the vocabulary.
  absl::Status ReadThrough() {
    ContentHash whole;
    whole.Update(file_.file_.bytes().first(file_.file_.bytes().size() - data_.size()));
    int64_t outside = -1;
    for (const HeaderTensor& tensor : tensors_) {  // in the order of the data, which they cover
      const bool is_tokens = tensor.name == "tokens";
      ContentHash own;
      int64_t position = 0;
      ForPieces(BytesOf(tensor), [&](Bytes piece) {
        own.Update(piece);
        whole.Update(piece);
        if (is_tokens && outside < 0) outside = OutsideOf(piece, &position);
        return true;
      });
      if (const uint64_t said = metadata_.hashes.at(tensor.name); own.Digest() != said)
        return absl::DataLossError(
            fmt::format("'{}' is damaged: tensor {} has the hash {:016x}, but its header says {:016x}",
                        file_.path(), Quote(tensor.name), own.Digest(), said));
    }
    file_.content_hash_ = whole.Digest();
    if (outside < 0) return absl::OkStatus();
    return Invalid("token {} has the value {}, outside of its vocabulary of {}", outside,
                   file_.Token(outside), file_.vocabulary_size_);
  }

  // The first token of a piece that begins with token *position which is outside of the vocabulary; -1: none.
  int64_t OutsideOf(Bytes piece, int64_t* position) const {
    const auto count = static_cast<int64_t>(piece.size()) / file_.token_bytes_;
    const int64_t first = std::exchange(*position, *position + count);
    const int64_t found = file_.token_bytes_ == 2
                              ? FindOutside(As<uint16_t>(piece).data(), count, file_.vocabulary_size_)
                              : FindOutside(As<uint32_t>(piece).data(), count, file_.vocabulary_size_);
    return found == count ? -1 : first + found;
  }

  absl::Status TakeDocuments() {
    FT_ASSIGN_OR_RETURN(const Bytes bytes, Row("documents", SafetensorsDType::kU64));
    const absl::Span<const uint64_t> documents = file_.documents_ = As<uint64_t>(bytes);
    if (documents.size() < 2) return Invalid("it has no documents");
    if (documents.front() != 0)
      return Invalid("its first document begins at token {}, not 0", documents.front());
    for (size_t i = 1; i < documents.size(); ++i) {
      if (documents[i] <= documents[i - 1])
        return Invalid("document {} begins at token {} and ends at token {}", i - 1, documents[i - 1],
                       documents[i]);
    }
    if (documents.back() != static_cast<uint64_t>(file_.num_tokens_))
      return Invalid("its last document ends at token {}, but there are {}", documents.back(),
                     file_.num_tokens_);
    return absl::OkStatus();
  }

  absl::Status TakeMask() {
    file_.counted_ = file_.num_tokens_;
    if (Find("loss_mask") != nullptr) {
      FT_ASSIGN_OR_RETURN(file_.mask_, Row("loss_mask", SafetensorsDType::kU8, (file_.num_tokens_ + 7) / 8));
      if (const int64_t used = file_.num_tokens_ & 7; used != 0 && file_.mask_.back() >> used != 0)
        return Invalid("its loss_mask has bits behind the last token");
      file_.counted_ = CountBits(file_.mask_);
    }
    if (file_.counted_ == metadata_.counted) return absl::OkStatus();
    return absl::DataLossError(
        fmt::format("'{}' is damaged: {} of its tokens count as targets, but its header says {}",
                    file_.path(), file_.counted_, metadata_.counted));
  }

  absl::Status TakeVocabulary() {
    if (Find("vocabulary.offsets") == nullptr && Find("vocabulary.bytes") == nullptr &&
        Find("vocabulary.special") == nullptr)
      return absl::OkStatus();
    const int64_t size = file_.vocabulary_size_;
    FT_ASSIGN_OR_RETURN(const Bytes raw, Row("vocabulary.offsets", SafetensorsDType::kU32, size + 1));
    FT_ASSIGN_OR_RETURN(const Bytes text, Row("vocabulary.bytes", SafetensorsDType::kU8));
    FT_ASSIGN_OR_RETURN(const Bytes special, Row("vocabulary.special", SafetensorsDType::kU8, size));
    const absl::Span<const uint32_t> offsets = As<uint32_t>(raw);
    if (offsets.front() != 0) return Invalid("vocabulary.offsets begin with {}, not 0", offsets.front());
    for (size_t i = 1; i < offsets.size(); ++i) {
      if (offsets[i] < offsets[i - 1])
        return Invalid("vocabulary.offsets fall from {} to {} at token {}", offsets[i - 1], offsets[i],
                       i - 1);
    }
    if (offsets.back() != text.size())
      return Invalid("vocabulary.offsets end at {}, but vocabulary.bytes has {}", offsets.back(),
                     text.size());
    const auto* odd = std::find_if(special.begin(), special.end(), [](uint8_t flag) { return flag > 1; });
    if (odd != special.end())
      return Invalid("vocabulary.special of token {} is {}, neither 0 nor 1", odd - special.begin(), *odd);
    file_.vocabulary_ = FtdVocabulary(offsets, reinterpret_cast<const char*>(text.data()), special);
    return absl::OkStatus();
  }

  absl::Status TakeInputs() {
    for (const HeaderTensor& tensor : tensors_) {
      if (!tensor.name.starts_with(kInputPrefix)) continue;
      std::string name = tensor.name.substr(kInputPrefix.size());
      if (!IsSignatureName(name)) return Invalid("no input of a model can be called {}", Quote(name));
      if (tensor.shape.empty() || tensor.shape[0] != file_.num_documents())
        return Invalid("tensor {} has the shape {}, but there are {} documents", Quote(tensor.name),
                       ShapeText(tensor.shape), file_.num_documents());
      file_.inputs_.push_back({std::move(name), tensor.dtype, tensor.shape, BytesOf(tensor)});
    }
    return absl::OkStatus();
  }

  FtdFile file_;
  Bytes data_;
  std::vector<HeaderTensor> tensors_;
  FtdMetadata metadata_;
};

absl::StatusOr<FtdFile> FtdFile::Open(const std::string& path) {
  FT_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path, MappedFile::Access::kNormal));
  return FtdOpener(std::move(file)).Open();
}

absl::StatusOr<bool> IsFtdFile(const std::string& path) {
  if (path.ends_with(kFtdSuffix)) return true;
  FT_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path, MappedFile::Access::kNormal));
  if (!IsSafetensors(file.bytes())) return false;
  const auto header = SafetensorsHeaderText(file.bytes(), path);
  if (!header.ok()) return false;
  HeaderMetadata metadata;
  const size_t data = file.bytes().size() - sizeof(uint64_t) - header->size();
  return ParseSafetensorsHeader(*header, data, path, &metadata).ok() && IsFtdMetadata(metadata);
}

}  // namespace ft
