#include "runtime/checkpoint/safetensors_head.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/safetensors_header.h"

namespace ft {
namespace {

constexpr size_t kDataAlignment = 8;

// As a JSON string; what is not UTF-8 is replaced.
std::string Quoted(std::string_view name) {
  const auto handler = nlohmann::json::error_handler_t::replace;
  return nlohmann::json(name).dump(-1, ' ', /*ensure_ascii=*/false, handler);
}

}  // namespace

uint64_t TensorSpec::bytes() const {
  uint64_t bytes = SizeOf(dtype);
  for (const int64_t dim : shape) bytes *= static_cast<uint64_t>(dim);
  return bytes;
}

absl::Status CheckTensorName(std::string_view name) {
  const std::string text = Quoted(name);
  if (nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false) != nlohmann::json(name))
    return absl::InvalidArgumentError(fmt::format("tensor name {} is not valid UTF-8", text));
  if (name.empty() || name == "__metadata__")
    return absl::InvalidArgumentError(fmt::format("tensor name '{}' is empty or reserved", name));
  return absl::OkStatus();
}

absl::Status CheckTensor(const TensorSpec& tensor) {
  FT_RETURN_IF_ERROR(CheckTensorName(tensor.name));
  uint64_t bytes = SizeOf(tensor.dtype);
  for (const int64_t dim : tensor.shape) {
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes))
      return absl::InvalidArgumentError(
          fmt::format("tensor '{}' cannot have the shape {}", tensor.name, ShapeText(tensor.shape)));
  }
  return absl::OkStatus();
}

std::string SafetensorsHead(absl::Span<const TensorSpec> tensors) {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  uint64_t begin = 0;
  for (const TensorSpec& tensor : tensors) {
    const uint64_t end = begin + tensor.bytes();
    header += fmt::format(R"(,{}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", Quoted(tensor.name),
                          Name(tensor.dtype), ShapeText(tensor.shape), begin, end);
    begin = end;
  }
  header += "}";
  const uint64_t bytes = (header.size() + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
  header.resize(bytes, ' ');
  std::string head(sizeof(bytes), '\0');
  for (size_t i = 0; i < sizeof(bytes); ++i) head[i] = static_cast<char>(bytes >> (8 * i) & 0xFF);
  return head + header;
}

}  // namespace ft
