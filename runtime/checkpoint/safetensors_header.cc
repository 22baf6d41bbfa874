#include "runtime/checkpoint/safetensors_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/strict_sax.h"

namespace ft {
namespace {

// Accepts {"__metadata__": {string: string}, NAME: {"dtype": string, "shape": [n, ...], "data_offsets": [n,
// n]}, ...}.
class HeaderSax : public StrictSax {
 public:
  std::vector<HeaderTensor> tensors;
  HeaderMetadata metadata;

  bool start_object(size_t) override {
    if (place_ == Place::kStart) {
      place_ = Place::kHeader;
    } else if (place_ == Place::kName && name_ == "__metadata__") {
      place_ = Place::kMetadata;
    } else if (place_ == Place::kName) {
      place_ = Place::kTensor;
      tensor_ = {};
      tensor_.name = name_;
      has_dtype_ = has_shape_ = has_offsets_ = false;
    } else {
      return Unexpected("an object");
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor && !EndTensor()) return false;
    place_ = place_ == Place::kHeader ? Place::kEnd : Place::kHeader;
    return true;
  }

  bool key(string_t& name) override {
    if (place_ == Place::kHeader) {
      if (!names_.insert(name).second) return Fail(fmt::format("names tensor '{}' twice", name));
      name_ = name;
      place_ = Place::kName;
      return true;
    }
    if (place_ == Place::kMetadata) {
      metadata.emplace_back(name, "");
      return true;
    }
    if (name == "dtype") return EnterField(Place::kDType, &has_dtype_, name);
    if (name == "shape") return EnterField(Place::kShape, &has_shape_, name);
    if (name == "data_offsets") return EnterField(Place::kOffsets, &has_offsets_, name);
    return Unexpected("the key \"" + name + "\"");
  }

  bool string(string_t& text) override {
    if (place_ == Place::kMetadata) {
      metadata.back().second = text;
      return true;
    }
    if (place_ != Place::kDType) return Unexpected("the string \"" + text + "\"");
    const std::optional<SafetensorsDType> dtype = ParseSafetensorsDType(text);
    if (!dtype) return Fail(fmt::format("gives tensor '{}' the unknown dtype '{}'", name_, text));
    tensor_.dtype = *dtype;
    place_ = Place::kTensor;
    return true;
  }

  bool start_array(size_t) override {
    if ((place_ != Place::kShape && place_ != Place::kOffsets) || in_array_) return Unexpected("an array");
    in_array_ = true;
    numbers_.clear();
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (!in_array_) return Unexpected(fmt::format("the number {}", value));
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Unexpected(fmt::format("the huge number {}", value));
    }
    numbers_.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool end_array() override {
    in_array_ = false;
    if (place_ == Place::kShape) {
      tensor_.shape = numbers_;
    } else {
      if (numbers_.size() != 2) {
        return Fail(fmt::format("gives tensor '{}' {} data_offsets instead of 2", name_, numbers_.size()));
      }
      tensor_.begin = static_cast<uint64_t>(numbers_[0]);
      tensor_.end = static_cast<uint64_t>(numbers_[1]);
    }
    place_ = Place::kTensor;
    return true;
  }

 protected:
  std::string Where() const override {
    switch (place_) {
      case Place::kStart:
        return "where the object of all tensors should begin";
      case Place::kMetadata:
        return "in __metadata__, which holds strings only";
      case Place::kDType:
        return fmt::format("as dtype of tensor '{}'", name_);
      case Place::kShape:
        return fmt::format("as shape of tensor '{}'", name_);
      case Place::kOffsets:
        return fmt::format("as data_offsets of tensor '{}'", name_);
      default:
        return fmt::format("in the description of tensor '{}'", name_);
    }
  }

 private:
  // What the next event belongs to.
  enum class Place { kStart, kHeader, kName, kMetadata, kTensor, kDType, kShape, kOffsets, kEnd };

  bool EnterField(Place place, bool* seen, std::string_view field) {
    if (std::exchange(*seen, true))
      return Fail(fmt::format("gives tensor '{}' two values of {}", name_, field));
    place_ = place;
    return true;
  }

  bool EndTensor() {
    const char* missing = !has_dtype_     ? "dtype"
                          : !has_shape_   ? "shape"
                          : !has_offsets_ ? "data_offsets"
                                          : nullptr;
    if (missing != nullptr) return Fail(fmt::format("gives tensor '{}' no {}", name_, missing));
    tensors.push_back(std::move(tensor_));
    return true;
  }

  Place place_ = Place::kStart;
  bool in_array_ = false;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
  std::string name_;
  std::vector<int64_t> numbers_;
  HeaderTensor tensor_;
  absl::flat_hash_set<std::string> names_;
};

// Sets num_elements, and checks the tensor against itself and the data area.
absl::Status CheckTensor(const std::string& file, uint64_t data_bytes, HeaderTensor* tensor) {
  auto bad = [&](const std::string& what) {
    return absl::InvalidArgumentError(fmt::format("'{}': tensor '{}' {}", file, tensor->name, what));
  };
  if (tensor->begin > tensor->end || tensor->end > data_bytes) {
    return bad(fmt::format("has the data_offsets [{}, {}], outside the {} bytes of data", tensor->begin,
                           tensor->end, data_bytes));
  }
  // In bytes, so that a product that fits cannot overflow later. A zero dimension makes any other one
  // harmless.
  uint64_t elements = 1, bytes = SizeOf(tensor->dtype);
  bool overflow = false;
  const bool empty = std::find(tensor->shape.begin(), tensor->shape.end(), 0) != tensor->shape.end();
  for (int64_t dim : tensor->shape) {
    if (empty) break;
    overflow |= __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes);
    elements *= static_cast<uint64_t>(dim);
  }
  if (empty) elements = bytes = 0;
  if (overflow || bytes != tensor->end - tensor->begin) {
    return bad(fmt::format("of shape {} and dtype {} has {} bytes of data", ShapeText(tensor->shape),
                           Name(tensor->dtype), tensor->end - tensor->begin));
  }
  tensor->num_elements = static_cast<int64_t>(elements);
  return absl::OkStatus();
}

// Sorted tensors must lie side by side from the first byte to the last.
absl::Status CheckCoverage(const std::string& file, uint64_t data_bytes,
                           const std::vector<HeaderTensor>& tensors) {
  uint64_t end = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].begin < end) {
      return absl::InvalidArgumentError(fmt::format(
          "'{}': tensors '{}' [{}, {}] and '{}' [{}, {}] overlap", file, tensors[i - 1].name,
          tensors[i - 1].begin, tensors[i - 1].end, tensors[i].name, tensors[i].begin, tensors[i].end));
    }
    if (tensors[i].begin > end) {
      return absl::InvalidArgumentError(
          fmt::format("'{}': {} bytes of data before tensor '{}' belong to no tensor", file,
                      tensors[i].begin - end, tensors[i].name));
    }
    end = tensors[i].end;
  }
  if (end != data_bytes) {
    return absl::InvalidArgumentError(
        fmt::format("'{}': the last {} bytes belong to no tensor", file, data_bytes - end));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string_view> SafetensorsHeaderText(absl::Span<const uint8_t> bytes,
                                                       const std::string& file) {
  uint64_t header_bytes = 0;
  if (bytes.size() < sizeof(header_bytes)) {
    return absl::DataLossError(fmt::format(
        "'{}' is no safetensors file: it has {} bytes, less than a header's length", file, bytes.size()));
  }
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  if (header_bytes > kMaxSafetensorsHeaderBytes) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no safetensors file: its header would have {} bytes (at most {} are allowed)",
                    file, header_bytes, kMaxSafetensorsHeaderBytes));
  }
  if (header_bytes > bytes.size() - sizeof(header_bytes)) {
    return absl::DataLossError(fmt::format("'{}' is truncated: its header has {} bytes, {} are there", file,
                                           header_bytes, bytes.size() - sizeof(header_bytes)));
  }
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + sizeof(header_bytes), header_bytes);
}

absl::StatusOr<std::vector<HeaderTensor>> ParseSafetensorsHeader(std::string_view json, uint64_t data_bytes,
                                                                 const std::string& file,
                                                                 HeaderMetadata* metadata) {
  HeaderSax sax;
  if (!ParseStrictly(json, &sax)) {
    return absl::InvalidArgumentError(fmt::format("'{}': the safetensors header {}", file, sax.error()));
  }
  std::vector<HeaderTensor> tensors = std::move(sax.tensors);
  if (metadata != nullptr) *metadata = std::move(sax.metadata);
  for (HeaderTensor& tensor : tensors) FT_RETURN_IF_ERROR(CheckTensor(file, data_bytes, &tensor));
  // Tensors without elements may share their place with a neighbour's begin: they come first, as `end` says.
  std::sort(tensors.begin(), tensors.end(), [](const HeaderTensor& a, const HeaderTensor& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  FT_RETURN_IF_ERROR(CheckCoverage(file, data_bytes, tensors));
  return tensors;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace ft
