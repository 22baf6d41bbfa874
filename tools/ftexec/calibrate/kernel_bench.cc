#include "tools/ftexec/calibrate/kernel_bench.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/philox.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

constexpr uint64_t kAlignment = 256;
constexpr uint64_t kFilledAtOnce = uint64_t{1} << 20;  // bytes

// bf16 numbers, two in a word, that are distributed about normally and have a deviation of 1/64: of all the
// same size, products would take a GPU less power than those of a training step, and run at a higher clock.
// As one f32 two of them are such a number, too.
std::vector<uint32_t> Numbers() {
  constexpr int kTerms = 4;  // uniform numbers, whose sum has a variance of 1/3
  std::vector<uint32_t> numbers(kFilledAtOnce / sizeof(uint32_t));
  const auto normal = [](uint32_t random) {
    float sum = 0;
    for (int i = 0; i < kTerms; ++i) sum += static_cast<float>((random >> (8 * i)) & 0xFF) / 255.0f - 0.5f;
    const auto bits = std::bit_cast<uint32_t>(sum * std::sqrt(3.0f) / 64.0f) >> 16;
    return (bits & 0x7FFFu) < 0x3000u ? 0x3000u : bits;  // no denormal product
  };
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto words = Philox4x32(1, 0, 0, i / 2);
    numbers[i] = normal(words[2 * (i % 2)]) << 16 | normal(words[2 * (i % 2) + 1]);
  }
  return numbers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KernelBench>> KernelBench::Create(const CalibrationSession& session,
                                                                 uint64_t bytes) {
  auto bench = absl::WrapUnique(new KernelBench(session));
  Device& device = session.device();
  FT_ASSIGN_OR_RETURN(bench->memory_, device.Allocate(bytes));
  FT_ASSIGN_OR_RETURN(bench->stream_, device.CreateStream("calibrate", 1));
  const std::vector<uint32_t> numbers = Numbers();
  for (uint64_t at = 0; at < bytes; at += kFilledAtOnce)
    FT_RETURN_IF_ERROR(device.Write(static_cast<char*>(bench->memory_->data()) + at, numbers.data(),
                                    std::min(kFilledAtOnce, bytes - at)));
  bench->info_.title = "calibration";
  bench->info_.instruction = -1;
  return bench;
}

Tensor KernelBench::Take(DType dtype, const std::vector<int64_t>& shape) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.rank = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), tensor.dims.begin());
  const uint64_t bytes = static_cast<uint64_t>(tensor.elements()) * SizeOf(dtype);
  if (next_ + bytes > memory_->bytes()) next_ = 0;
  tensor.data = static_cast<char*>(memory_->data()) + next_;
  next_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return tensor;
}

Tensor KernelBench::Scratch(int64_t cpu_bytes, int64_t cuda_bytes) {
  const int64_t bytes = session_.is_cpu() ? cpu_bytes : cuda_bytes;
  return bytes == 0 ? Tensor() : Take(DType::kU8, {bytes});
}

absl::Status KernelBench::Add(const std::string& kernel, const KernelOperands& operands,
                              const KernelAttributes& attributes) {
  absl::StatusOr<std::unique_ptr<Kernel>> made = session_.device().CreateKernel(kernel, operands, attributes);
  if (!made.ok())
    return absl::Status(made.status().code(),
                        absl::StrCat("kernel '", kernel, "' cannot be timed: ", made.status().message()));
  kernels_.push_back(*std::move(made));
  commands_.push_back(Command::Launch(kernels_.back().get(), &info_));
  return absl::OkStatus();
}

absl::StatusOr<Sample> KernelBench::Time(double seconds) {
  absl::StatusOr<Sample> sample = session_.Time(*stream_, commands_, seconds);
  if (sample.ok()) sample->seconds /= static_cast<double>(std::max<size_t>(1, commands_.size()));
  commands_.clear();
  kernels_.clear();
  return sample;
}

}  // namespace ft
