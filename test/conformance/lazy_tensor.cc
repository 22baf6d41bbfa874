#include "test/conformance/lazy_tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <thread>

#include "runtime/base/round_float.h"
#include "runtime/base/status_macros.h"

namespace ft::conformance {
namespace {

constexpr int64_t kChunk = int64_t{4} << 20;  // elements that the host holds at a time

// splitmix64 of S. Vigna.
uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

// Four uniform numbers of 16 bits, summed and centred: of deviation 2^16 / sqrt(3).
double CentredSum(uint64_t bits) {
  const uint64_t sum = (bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48);
  return static_cast<double>(sum) - 2.0 * 0xFFFF;
}

double Decoded(const std::byte* data, int64_t i, DType dtype) {
  if (dtype == DType::kF32) {
    float value = 0;
    std::memcpy(&value, data + i * 4, 4);
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, data + i * 2, 2);
  return dtype == DType::kBF16 ? BF16ToFloat(bits) : F16ToFloat(bits);
}

void Encode(double value, DType dtype, std::byte* out) {
  if (dtype == DType::kI32) {
    const auto whole = static_cast<int32_t>(value);
    std::memcpy(out, &whole, 4);
  } else if (dtype == DType::kF32) {
    const auto single = static_cast<float>(value);
    std::memcpy(out, &single, 4);
  } else {
    const auto single = static_cast<float>(value);
    const uint16_t bits = dtype == DType::kBF16 ? RoundToBF16(single) : RoundToF16(single);
    std::memcpy(out, &bits, 2);
  }
}

// Calls use(first element, count, bytes) for all of it, chunk by chunk.
template <typename F>
absl::Status ReadAll(Bench& bench, const Placed& placed, F use) {
  const auto size = static_cast<int64_t>(SizeOf(placed.tensor.dtype));
  std::vector<std::byte> chunk(static_cast<size_t>(std::min(kChunk, placed.tensor.elements()) * size));
  for (int64_t begin = 0; begin < placed.tensor.elements(); begin += kChunk) {
    const int64_t count = std::min(kChunk, placed.tensor.elements() - begin);
    FT_RETURN_IF_ERROR(bench.Read(chunk.data(), placed.tensor.as<std::byte>() + begin * size,
                                  static_cast<uint64_t>(count * size)));
    use(begin, count, chunk.data());
  }
  return absl::OkStatus();
}

}  // namespace

LazyTensor LazyTensor::Normal(std::vector<int64_t> dims, uint64_t seed, double deviation, DType dtype) {
  return LazyTensor(std::move(dims), seed, deviation * std::sqrt(3.0) / 65536, dtype);
}

LazyTensor LazyTensor::Integers(std::vector<int64_t> dims, uint64_t seed, int64_t limit) {
  return LazyTensor(std::move(dims), seed, static_cast<double>(limit), DType::kI32);
}

int64_t LazyTensor::elements() const {
  int64_t n = 1;
  for (const int64_t dim : dims_) n *= dim;
  return n;
}

double LazyTensor::At(int64_t i) const {
  const uint64_t bits = Mix(seed_ << 40 ^ static_cast<uint64_t>(i));
  if (dtype_ == DType::kI32) return std::floor(static_cast<double>(bits >> 11) * 0x1p-53 * scale_);
  const auto value = static_cast<float>(CentredSum(bits) * scale_);
  if (dtype_ == DType::kBF16) return BF16ToFloat(RoundToBF16(value));
  return dtype_ == DType::kF16 ? F16ToFloat(RoundToF16(value)) : value;
}

void LazyTensor::Read(int64_t begin, int64_t count, double* values) const {
  for (int64_t i = 0; i < count; ++i) values[i] = At(begin + i);
}

absl::StatusOr<Placed> Place(Bench& bench, std::string name, const std::vector<int64_t>& dims, DType dtype) {
  Placed placed;
  placed.name = std::move(name);
  placed.tensor.dtype = dtype;
  placed.tensor.rank = static_cast<int>(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) placed.tensor.dims[i] = dims[i];
  const uint64_t bytes = static_cast<uint64_t>(placed.tensor.elements()) * SizeOf(dtype);
  FT_ASSIGN_OR_RETURN(placed.memory, bench.Allocate(bytes, 256));
  placed.tensor.data = placed.memory->data();
  return placed;
}

absl::StatusOr<Placed> PlaceWorkspace(Bench& bench, int64_t bytes) {
  return Place(bench, "workspace", {std::max<int64_t>(bytes, 1)}, DType::kU8);
}

absl::Status WriteValues(Bench& bench, const LazyTensor& values, const Placed& placed) {
  const auto size = static_cast<int64_t>(SizeOf(values.dtype()));
  std::vector<std::byte> chunk(static_cast<size_t>(std::min(kChunk, values.elements()) * size));
  for (int64_t first = 0; first < values.elements(); first += kChunk) {
    const int64_t count = std::min(kChunk, values.elements() - first);
    InParallel(count, [&](int64_t begin, int64_t end, int64_t) {
      for (int64_t i = begin; i < end; ++i)
        Encode(values.At(first + i), values.dtype(), chunk.data() + i * size);
    });
    FT_RETURN_IF_ERROR(bench.Write(placed.tensor.as<std::byte>() + first * size, chunk.data(),
                                   static_cast<uint64_t>(count * size)));
  }
  return absl::OkStatus();
}

absl::Status Spoil(Bench& bench, const Placed& placed) {
  const uint64_t bytes = placed.memory->bytes();
  const std::vector<std::byte> ones(std::min<uint64_t>(bytes, uint64_t{16} << 20), std::byte{0xFF});
  for (uint64_t begin = 0; begin < bytes; begin += ones.size()) {
    FT_RETURN_IF_ERROR(bench.Write(placed.tensor.as<std::byte>() + begin, ones.data(),
                                   std::min<uint64_t>(ones.size(), bytes - begin)));
  }
  return absl::OkStatus();
}

absl::Status ReadElements(Bench& bench, const Placed& placed, int64_t begin, int64_t count, double* values) {
  const auto size = static_cast<int64_t>(SizeOf(placed.tensor.dtype));
  std::vector<std::byte> bytes(static_cast<size_t>(count * size));
  FT_RETURN_IF_ERROR(bench.Read(bytes.data(), placed.tensor.as<std::byte>() + begin * size, bytes.size()));
  for (int64_t i = 0; i < count; ++i) values[i] = Decoded(bytes.data(), i, placed.tensor.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Scan> ScanAll(Bench& bench, const Placed& placed) {
  Scan scan;
  FT_RETURN_IF_ERROR(ReadAll(bench, placed, [&](int64_t first, int64_t count, const std::byte* data) {
    std::vector<Scan> parts(static_cast<size_t>(Parts(count)));
    InParallel(count, [&](int64_t begin, int64_t end, int64_t part) {
      Scan& own = parts[static_cast<size_t>(part)];
      for (int64_t i = begin; i < end; ++i) {
        const double value = Decoded(data, i, placed.tensor.dtype);
        own.hash = Mix(own.hash ^ std::bit_cast<uint64_t>(value));
        if (own.not_finite < 0 && !std::isfinite(value)) own.not_finite = first + i;
      }
    });
    for (const Scan& part : parts) {
      scan.hash = Mix(scan.hash ^ part.hash);
      if (scan.not_finite < 0) scan.not_finite = part.not_finite;
    }
  }));
  return scan;
}

int64_t Parts(int64_t count) {
  const int64_t threads = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, 16);
  return std::max<int64_t>(1, std::min(threads, count));
}

void InParallel(int64_t count, const std::function<void(int64_t, int64_t, int64_t)>& run) {
  const int64_t parts = Parts(count);
  std::vector<std::thread> threads;
  for (int64_t part = 1; part < parts; ++part)
    threads.emplace_back([&, part] { run(count * part / parts, count * (part + 1) / parts, part); });
  run(0, count / parts, 0);
  for (std::thread& thread : threads) thread.join();
}

std::vector<int64_t> SampleOf(int64_t n, int64_t count, uint64_t seed) {
  std::set<int64_t> sample;
  if (count >= n) {
    for (int64_t i = 0; i < n; ++i) sample.insert(i);
  } else if (n > 0) {
    sample.insert({0, n - 1});
    for (uint64_t i = 0; static_cast<int64_t>(sample.size()) < count; ++i)
      sample.insert(static_cast<int64_t>(Mix(seed << 40 ^ i) % static_cast<uint64_t>(n)));
  }
  return {sample.begin(), sample.end()};
}

}  // namespace ft::conformance
