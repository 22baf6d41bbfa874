#include "runtime/data/row_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/base/load_element.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/inputs.h"

namespace ft {
namespace {

// Calls `with` with a value of the type that `stored` is, where it is one of integers; says whether it is.
template <typename With>
bool WithInteger(SafetensorsDType stored, With with) {
  switch (stored) {
    case SafetensorsDType::kBool:
    case SafetensorsDType::kU8:
      return with(uint8_t{0}), true;
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

template <typename Out>
void Convert(SafetensorsDType stored, const uint8_t* data, int64_t first, int64_t count, Out* out) {
  WithInteger(stored, [&](auto type) {
    for (int64_t i = 0; i < count; ++i)
      out[i] = static_cast<Out>(LoadElement<decltype(type)>(data, first + i));
  });
}

}  // namespace

absl::Status RowTensor::Check(const std::vector<int64_t>& shape, const proto::Input& input,
                              const std::string& what) const {
  std::vector<int64_t> wanted = ExampleShape(input);
  wanted.insert(wanted.begin(), num_rows_);
  if (!CanFill(dtype_, stored_) || shape != wanted)
    return absl::InvalidArgumentError(
        fmt::format("{} is {} [{}], but the model's input wants {} for each example", what, Name(stored_),
                    fmt::join(shape, ", "), ExampleText(input)));
  if (!HoldsIntegers(dtype_) || (dtype_ == proto::I64 && input.ids_below() == 0)) return absl::OkStatus();
  const auto [least, below] = RangeOf(input);
  int64_t bad = -1, value = 0;
  WithInteger(stored_, [&, least = least, below = below](auto type) {
    const auto count = static_cast<int64_t>(bytes_.size() / sizeof(type));
    for (int64_t i = 0; i < count && bad < 0; ++i) {
      value = static_cast<int64_t>(LoadElement<decltype(type)>(bytes_.data(), i));
      if (value < least || value >= below) bad = i;
    }
  });
  if (bad < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{} has for example {} the value {}, outside of {} ... {}{}",
                                                what, bad / elements_, value,
                                                input.may_be_left_out() ? 0 : least, below - 1,
                                                input.may_be_left_out() ? " (or negative: left out)" : ""));
}

absl::StatusOr<RowTensor> RowTensor::Make(SafetensorsDType dtype, const std::vector<int64_t>& shape,
                                          absl::Span<const uint8_t> bytes, const proto::Input& input,
                                          const std::string& what) {
  RowTensor made;
  made.stored_ = dtype;
  made.dtype_ = input.dtype();
  made.num_rows_ = shape.empty() ? 1 : shape[0];
  for (const int64_t extent : ExampleShape(input)) made.elements_ *= extent;
  made.bytes_ = bytes;
  FT_RETURN_IF_ERROR(made.Check(shape, input, what));
  return made;
}

void RowTensor::Fill(int64_t row, void* out) const {
  const int64_t first = row * elements_;
  if (dtype_ == proto::I64)
    return Convert(stored_, bytes_.data(), first, elements_, static_cast<int64_t*>(out));
  if (dtype_ == proto::I32)
    return Convert(stored_, bytes_.data(), first, elements_, static_cast<int32_t*>(out));
  const size_t size = SizeOf(stored_);
  std::memcpy(out, bytes_.data() + static_cast<size_t>(first) * size, static_cast<size_t>(elements_) * size);
}

}  // namespace ft
