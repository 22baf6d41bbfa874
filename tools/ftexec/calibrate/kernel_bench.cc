#include "tools/ftexec/calibrate/kernel_bench.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/philox.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

constexpr uint64_t kAlignment = 256;
constexpr uint64_t kFilledAtOnce = uint64_t{1} << 20;  // bytes

// Two bf16 numbers of either sign between 1/128 and 1/64, which as one f32 are such a number, too.
std::vector<uint32_t> Numbers() {
  std::vector<uint32_t> numbers(kFilledAtOnce / sizeof(uint32_t));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const uint32_t random = Philox4x32(1, 0, 0, i / 4)[i % 4];
    numbers[i] = 0x3C003C00u | (random & 0x807F807Fu);
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
