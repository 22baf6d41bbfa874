#include "runtime/data/npy_array.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/base/checked.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr size_t kMaxDimensions = 8;
constexpr std::pair<std::string_view, SafetensorsDType> kNpyTypes[] = {{"<f4", SafetensorsDType::kF32},
                                                                       {"<i4", SafetensorsDType::kI32},
                                                                       {"<i8", SafetensorsDType::kI64},
                                                                       {"|u1", SafetensorsDType::kU8},
                                                                       {"|b1", SafetensorsDType::kBool}};

// The header is a dictionary in Python's words: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class NpyHeader {
 public:
  explicit NpyHeader(std::string_view text) : text_(text) {}

  bool Read() {
    if (!Take("{")) return false;
    while (!Take("}")) {
      const std::optional<std::string_view> key = Quoted();
      if (!key.has_value() || !Take(":") || !Value(*key)) return false;
      if (!Take(",")) {
        if (!Take("}")) return false;
        break;
      }
    }
    SkipBlanks();
    return text_.empty() && has_shape_ && has_order_ && !descr.empty();
  }

  std::string_view descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;

 private:
  void SkipBlanks() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }

  bool Take(std::string_view word) {
    SkipBlanks();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  std::optional<std::string_view> Quoted() {
    if (!Take("'")) return std::nullopt;
    const size_t end = text_.find('\'');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view word = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return word;
  }

  bool Value(std::string_view key) {
    if (key == "descr" && descr.empty()) {
      descr = Quoted().value_or("");
      return !descr.empty();
    }
    if (key == "fortran_order" && !std::exchange(has_order_, true)) {
      fortran_order = Take("True");
      return fortran_order || Take("False");
    }
    return key == "shape" && !std::exchange(has_shape_, true) && Shape();
  }

  bool Shape() {
    if (!Take("(")) return false;
    while (!Take(")")) {
      SkipBlanks();
      int64_t extent = -1;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0 || shape.size() == kMaxDimensions) return false;
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      shape.push_back(extent);
      if (!Take(",")) return Take(")");
    }
    return true;
  }

  std::string_view text_;
  bool has_shape_ = false, has_order_ = false;
};

template <typename... Args>
absl::Status InvalidNpy(const std::string& path, fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError(
      fmt::format("'{}' {}", path, fmt::format(format, std::forward<Args>(args)...)));
}

// The header's text, and where the elements begin.
absl::StatusOr<std::pair<std::string_view, size_t>> FindNpyHeader(absl::Span<const uint8_t> bytes,
                                                                  const std::string& path) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kNpyMagic) || text.size() < 12)
    return InvalidNpy(path, "is no array of NumPy: it does not begin as one");
  const int version = bytes[6];
  if (version < 1 || version > 3 || bytes[7] != 0)
    return InvalidNpy(path, "is of version {}.{} of NumPy's format; 1.0 to 3.0 are read", version, bytes[7]);
  const size_t width = version == 1 ? 2 : 4, begin = 8 + width;
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, width);
  if (length > text.size() - begin)
    return absl::DataLossError(fmt::format("'{}' is cut off in its header", path));
  return std::pair(text.substr(begin, length), begin + length);
}

}  // namespace

absl::StatusOr<NpyArray> NpyArray::Open(const std::string& path) {
  FT_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path, MappedFile::Access::kNormal));
  FT_ASSIGN_OR_RETURN(const auto found, FindNpyHeader(file.bytes(), path));
  NpyHeader header(found.first);
  if (!header.Read()) return InvalidNpy(path, "has no header of an array: {}", Quote(found.first));
  const auto* type = std::find_if(std::begin(kNpyTypes), std::end(kNpyTypes),
                                  [&](const auto& known) { return known.first == header.descr; });
  if (type == std::end(kNpyTypes))
    return InvalidNpy(path, "has elements of {}; those that are read are <f4, <i4, <i8, |u1 and |b1",
                      Quote(header.descr));
  if (header.fortran_order)
    return InvalidNpy(path, "is in Fortran's order; save numpy.ascontiguousarray of it");
  if (header.shape.empty())
    return InvalidNpy(path, "is a single number; its first axis has to be the examples");
  NpyArray array(std::move(file));
  array.dtype_ = type->second;
  array.shape_ = header.shape;
  array.bytes_ = array.file_.bytes().subspan(found.second);
  int64_t bytes = static_cast<int64_t>(SizeOf(array.dtype_));
  for (const int64_t extent : array.shape_) bytes = CheckedMul(bytes, extent);
  if (bytes == static_cast<int64_t>(array.bytes_.size())) return array;
  return absl::DataLossError(fmt::format("'{}' has {} bytes of elements, but an array of {} ({}) has {}",
                                         path, array.bytes_.size(), header.descr,
                                         fmt::join(array.shape_, ", "), bytes));
}

}  // namespace ft
