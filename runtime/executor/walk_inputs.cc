#include "runtime/executor/walk_inputs.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "runtime/base/convert_elements.h"
#include "runtime/base/philox.h"
#include "runtime/base/status_macros.h"
#include "runtime/executor/training_settings.h"

namespace ft {
namespace {

// `value(element)` for each, as numbers of the tensor's type.
std::vector<char> Elements(const Tensor& tensor, const std::function<double(uint64_t)>& value) {
  const auto count = static_cast<uint64_t>(tensor.elements());
  const size_t size = SizeOf(tensor.dtype);
  std::vector<char> bytes(count * size);
  for (uint64_t i = 0; i < count; ++i) {
    char* const to = bytes.data() + i * size;
    const double number = value(i);
    const auto store = [to](auto typed) { std::memcpy(to, &typed, sizeof(typed)); };
    switch (tensor.dtype) {
      case DType::kI32:
        store(static_cast<int32_t>(number));
        break;
      case DType::kI64:
        store(static_cast<int64_t>(number));
        break;
      case DType::kU8:
        store(static_cast<uint8_t>(number));
        break;
      case DType::kF64:
        store(number);
        break;
      default: {
        const auto single = static_cast<float>(number);
        ConvertElements(DType::kF32, reinterpret_cast<const std::byte*>(&single), tensor.dtype,
                        reinterpret_cast<std::byte*>(to), 1);
      }
    }
  }
  return bytes;
}

// Below it ids are drawn.
uint64_t IdsBelow(const proto::Plan& plan, const proto::Input& input) {
  if (input.ids_below() > 0) return input.ids_below();
  return std::max<uint64_t>(1, plan.vocab_size());
}

std::vector<char> ModelInput(const proto::Plan& plan, const proto::Input& input, const Tensor& tensor,
                             uint64_t seed) {
  const uint64_t length = std::max<uint64_t>(1, plan.seq_len());
  const auto uniform = [seed](uint64_t i) {
    return static_cast<double>(PhiloxUniform(Philox4x32(seed, 0, 0, i / 4)[i % 4]));
  };
  switch (input.filling()) {
    case proto::Input::VALUE: {
      std::vector<char> bytes(input.value().begin(), input.value().end());
      bytes.resize(tensor.bytes());
      return bytes;
    }
    case proto::Input::POSITIONS:
      return Elements(tensor, [length](uint64_t i) { return static_cast<double>(i % length); });
    case proto::Input::SEGMENTS:
    case proto::Input::TOKEN_TYPES:
      return Elements(tensor, [](uint64_t) { return 0.0; });
    case proto::Input::LENGTHS:
      return Elements(tensor, [length](uint64_t) { return static_cast<double>(length); });
    case proto::Input::ATTENTION_MASK:
      return Elements(tensor, [](uint64_t) { return 1.0; });
    default:
      break;
  }
  if (tensor.dtype == DType::kI32 || tensor.dtype == DType::kI64) {
    const auto below = static_cast<double>(IdsBelow(plan, input));
    return Elements(tensor, [&](uint64_t i) { return uniform(i) * below; });
  }
  if (tensor.dtype == DType::kU8) return Elements(tensor, [](uint64_t) { return 1.0; });
  return Elements(tensor, [&](uint64_t i) { return 2 * uniform(i) - 1; });
}

}  // namespace

absl::StatusOr<std::vector<char>> WalkInput(const proto::Plan& plan, const proto::Port& port,
                                            const Tensor& tensor, uint64_t seed) {
  for (const proto::Input& input : plan.inputs())
    if (input.name() == port.name()) return ModelInput(plan, input, tensor, seed);
  if (port.name() == "lr") return Elements(tensor, [](uint64_t) { return 1e-5; });
  if (port.name() == "inverse_ranks") return Elements(tensor, [](uint64_t) { return 1.0 / 3; });
  if (port.name() == "rng")
    return Elements(tensor, [seed](uint64_t i) { return i == 0 ? static_cast<double>(seed) : 0.0; });
  if (port.name() == "scaler") {
    FT_ASSIGN_OR_RETURN(const LossScaling scaling, LossScalingOf(plan));
    return Elements(tensor, [&](uint64_t i) { return i == 0 ? scaling.initial : 0.0; });
  }
  return Elements(tensor, [](uint64_t) { return 0.0; });
}

}  // namespace ft
