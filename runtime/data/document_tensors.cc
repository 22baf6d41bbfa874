#include "runtime/data/document_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/inputs.h"

namespace ft {
namespace {

template <typename T>
T Load(const uint8_t* data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

// Calls `with` with a value of the type that `stored` is, where it is one of integers; says whether it is.
template <typename With>
bool WithInteger(SafetensorsDType stored, With with) {
  switch (stored) {
    case SafetensorsDType::kBool:
    case SafetensorsDType::kU8:
      return with(uint8_t{0}), true;
    case SafetensorsDType::kI8:
      return with(int8_t{0}), true;
    case SafetensorsDType::kI16:
      return with(int16_t{0}), true;
    case SafetensorsDType::kU16:
      return with(uint16_t{0}), true;
    case SafetensorsDType::kI32:
      return with(int32_t{0}), true;
    case SafetensorsDType::kU32:
      return with(uint32_t{0}), true;
    case SafetensorsDType::kI64:
      return with(int64_t{0}), true;
    default:
      return false;
  }
}

bool HoldsIntegers(proto::DType dtype) {
  return dtype == proto::I32 || dtype == proto::I64 || dtype == proto::U8;
}

bool CanFill(proto::DType dtype, SafetensorsDType stored) {
  if (dtype == proto::F32) return stored == SafetensorsDType::kF32;
  if (dtype == proto::BF16) return stored == SafetensorsDType::kBF16;
  if (dtype == proto::U8) return stored == SafetensorsDType::kBool || stored == SafetensorsDType::kU8;
  return HoldsIntegers(dtype) && WithInteger(stored, [](auto) {});
}

// The values that an input of integers may have: [least, below).
std::pair<int64_t, int64_t> RangeOf(const proto::Input& input) {
  if (input.dtype() == proto::U8) return {0, 2};
  constexpr int64_t kLeast = std::numeric_limits<int32_t>::min();
  if (input.ids_below() > 0)
    return {input.may_be_left_out() ? kLeast : 0, static_cast<int64_t>(input.ids_below())};
  return {kLeast, -kLeast};
}

int64_t ElementsOf(const proto::Input& input) {
  int64_t elements = 1;
  for (const int64_t extent : ExampleShape(input)) elements *= extent;
  return elements;
}

absl::Status CheckTensor(const FtdFile::Input& tensor, const proto::Input& input, const std::string& path) {
  std::vector<int64_t> wanted = ExampleShape(input);
  wanted.insert(wanted.begin(), tensor.shape[0]);
  if (!CanFill(input.dtype(), tensor.dtype) || tensor.shape != wanted)
    return absl::InvalidArgumentError(fmt::format(
        "'{}': tensor 'input.{}' is {} [{}], but the model's input wants {} for each document", path,
        tensor.name, Name(tensor.dtype), fmt::join(tensor.shape, ", "), ExampleText(input)));
  if (!HoldsIntegers(input.dtype()) || (input.dtype() == proto::I64 && input.ids_below() == 0))
    return absl::OkStatus();
  const auto [least, below] = RangeOf(input);
  int64_t bad = -1, value = 0;
  WithInteger(tensor.dtype, [&, least = least, below = below](auto type) {
    const auto count = static_cast<int64_t>(tensor.bytes.size() / sizeof(type));
    for (int64_t i = 0; i < count && bad < 0; ++i) {
      value = static_cast<int64_t>(Load<decltype(type)>(tensor.bytes.data(), i));
      if (value < least || value >= below) bad = i;
    }
  });
  if (bad < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("'{}': tensor 'input.{}' has for document {} the value {}, outside of {} ... {}{}", path,
                  tensor.name, bad / ElementsOf(input), value, input.may_be_left_out() ? 0 : least, below - 1,
                  input.may_be_left_out() ? " (or negative: left out)" : ""));
}

template <typename Out>
void Convert(SafetensorsDType stored, const uint8_t* data, int64_t first, int64_t count, Out* out) {
  WithInteger(stored, [&](auto type) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<Out>(Load<decltype(type)>(data, first + i));
  });
}

}  // namespace

absl::StatusOr<DocumentTensors> DocumentTensors::Make(absl::Span<const FtdFile::Input> tensors,
                                                      DataInputs& inputs, const std::string& path) {
  DocumentTensors made;
  for (const FtdFile::Input& tensor : tensors) {
    const auto input = std::find_if(
        inputs.inputs.begin(), inputs.inputs.end(),
        [&](const proto::Input& each) { return each.name() == tensor.name && !IsConstant(each); });
    if (input == inputs.inputs.end())
      return absl::InvalidArgumentError(
          fmt::format("'{}': no input of the model takes tensor 'input.{}'", path, tensor.name));
    input->set_filling(proto::Input::TENSOR);
    FT_RETURN_IF_ERROR(CheckTensor(tensor, *input, path));
    made.fields_.push_back({static_cast<size_t>(input - inputs.inputs.begin()), input->dtype(), tensor.dtype,
                            ElementsOf(*input), tensor.bytes.data()});
  }
  for (size_t i = 0; i < inputs.inputs.size(); ++i) {
    const proto::Input& input = inputs.inputs[i];
    const bool has = std::any_of(made.fields_.begin(), made.fields_.end(),
                                 [i](const Field& field) { return field.input == i; });
    if (has || IsOfTokens(input.filling()) || input.filling() == proto::Input::VALUE) continue;
    return absl::InvalidArgumentError(
        fmt::format("'{}' has no tensor 'input.{}', which the model's input '{}' needs: {} for each document",
                    path, input.name(), input.name(), ExampleText(input)));
  }
  return made;
}

void DocumentTensors::Fill(int64_t document, absl::Span<void* const> rows) const {
  for (const Field& field : fields_) {
    const int64_t first = document * field.elements;
    void* const out = rows[field.input];
    switch (field.dtype) {
      case proto::I64:
        Convert(field.stored, field.data, first, field.elements, static_cast<int64_t*>(out));
        break;
      case proto::I32:
        Convert(field.stored, field.data, first, field.elements, static_cast<int32_t*>(out));
        break;
      default: {
        const size_t size = SizeOf(field.stored);
        std::memcpy(out, field.data + static_cast<size_t>(first) * size,
                    static_cast<size_t>(field.elements) * size);
      }
    }
  }
}

}  // namespace ft
