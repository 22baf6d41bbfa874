#include "tools/ftexec/calibrate/kernels.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/attention_span.h"
#include "runtime/base/cuda_workspace.h"
#include "runtime/base/flat_layout.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/workspace.h"
#include "runtime/cost/curve.h"
#include "runtime/cost/kernels.h"
#include "tools/ftexec/calibrate/products.h"

namespace ft {
namespace {

constexpr int64_t kHeadSize = 64;
constexpr size_t kLengths = 3, kMoved = 4;
// What fills a device, and what its caches do not hold.
struct Sizes {
  int64_t heads;
  int64_t positions;          // of a batch, at least
  int64_t lengths[kLengths];  // of attention
  uint64_t moved[kMoved];     // bytes
  uint64_t turned;            // bytes over which the calls of a list are spread
};
constexpr Sizes kOfCpu = {
    .heads = 4,
    .positions = 2048,
    .lengths = {128, 512, 2048},
    .moved = {uint64_t{16} << 10, uint64_t{256} << 10, uint64_t{4} << 20, uint64_t{64} << 20},
    .turned = uint64_t{256} << 20};
constexpr Sizes kOfGpu = {
    .heads = 8,
    .positions = 32768,
    .lengths = {512, 4096, 16384},
    .moved = {uint64_t{256} << 10, uint64_t{4} << 20, uint64_t{64} << 20, uint64_t{1} << 30},
    .turned = uint64_t{1} << 30};
constexpr uint64_t kCopied[] = {uint64_t{64} << 10, uint64_t{1} << 20, uint64_t{8} << 20, uint64_t{64} << 20};

const Sizes& SizesFor(const KernelBench& bench) { return bench.session().is_cpu() ? kOfCpu : kOfGpu; }

// How many calls are made on bytes of their own, one after the other: of large ones so many that none finds
// its own in a cache; small ones are produced and read in caches in a step, too.
int CallsOver(const KernelBench& bench, uint64_t bytes) {
  return static_cast<int>(std::clamp<uint64_t>(SizesFor(bench).turned / bytes, 1, 64));
}

int64_t BatchFor(const KernelBench& bench, int64_t length) {
  return std::max<int64_t>(1, SizesFor(bench).positions / length);
}

absl::Status AddAttention(KernelBench& bench, DType dtype, int64_t length, bool is_backward) {
  const int64_t heads = SizesFor(bench).heads, batch = BatchFor(bench, length), width = heads * kHeadSize;
  const AttentionSizes sizes{batch, length, heads, heads, kHeadSize, dtype};
  const std::vector<int64_t> shape = {batch, length, width};
  const auto take = [&] { return bench.Take(dtype, shape); };
  const Tensor q = take(), k = take(), v = take(), out = take();
  const Tensor lse = bench.Take(DType::kF32, {batch, heads, length});
  KernelAttributes attributes;
  const std::pair<const char*, int64_t> numbers[] = {
      {"heads", heads}, {"kv_heads", heads}, {"causal", 1}, {"alibi", 0}};
  for (const auto& [name, number] : numbers) attributes.Add(name, number);
  const Tensor none;
  if (!is_backward)
    return bench.Add(
        "attention",
        {.in = {q, k, v, none, none, none},
         .out = {out, lse},
         .workspace = bench.Scratch(AttentionWorkspace(sizes), cuda_workspace::Attention(sizes))},
        attributes);
  return bench.Add(
      "attention_grad",
      {.in = {take(), q, k, v, out, lse, none, none, none},
       .out = {take(), take(), take()},
       .workspace = bench.Scratch(AttentionGradWorkspace(sizes), cuda_workspace::AttentionGrad(sizes))},
      attributes);
}

double AttentionFlops(const KernelBench& bench, int64_t length, bool is_backward) {
  const auto pairs = static_cast<double>(SpanOf(length, true, std::nullopt).Pairs(length));
  return (is_backward ? 5 : 2) * 2 * pairs *
         static_cast<double>(BatchFor(bench, length) * SizesFor(bench).heads * kHeadSize);
}

// Reads two and writes one.
absl::StatusOr<Sample> TimeSum(KernelBench& bench, uint64_t bytes, double seconds) {
  const auto elements = static_cast<int64_t>(bytes / 3 / sizeof(float));
  for (int i = 0; i < CallsOver(bench, bytes); ++i) {
    const Tensor x = bench.Take(DType::kF32, {elements}), sum = bench.Take(DType::kF32, {elements});
    FT_RETURN_IF_ERROR(bench.Add("accumulate", {.in = {x, sum}, .out = {sum}, .workspace = {}}, {}));
  }
  return bench.Time(seconds);
}

// Reads one, as the norm of gradients does.
absl::StatusOr<Sample> TimeReduction(KernelBench& bench, uint64_t bytes, double seconds) {
  const auto elements = static_cast<int64_t>(bytes / sizeof(float));
  for (int i = 0; i < CallsOver(bench, bytes); ++i)
    FT_RETURN_IF_ERROR(bench.Add("sum_squares",
                                 {.in = {bench.Take(DType::kF32, {elements}), Tensor()},
                                  .out = {bench.Take(DType::kI64, {kAccumulatorWords})},
                                  .workspace = {}},
                                 {}));
  return bench.Time(seconds);
}

}  // namespace

absl::Status MeasureLatency(KernelBench& bench, double seconds, Target& target) {
  FT_ASSIGN_OR_RETURN(const Sample sample, TimeSum(bench, 3 * 64 * sizeof(float), seconds));
  target.set_kernel_latency_s(sample.seconds);
  return absl::OkStatus();
}

absl::Status MeasureAttention(KernelBench& bench, double seconds, Target& target) {
  std::vector<double> spreads;
  const double each = seconds / (2 * 2 * kLengths);
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    Target::Attention* rates = target.add_attention();
    rates->set_head_size(kHeadSize);
    rates->set_f32(dtype == DType::kF32);
    for (const bool is_backward : {false, true})
      for (const int64_t length : SizesFor(bench).lengths) {
        FT_RETURN_IF_ERROR(AddAttention(bench, dtype, length, is_backward));
        FT_ASSIGN_OR_RETURN(const Sample sample, bench.Time(each));
        const double body = std::max(sample.seconds - target.kernel_latency_s(), sample.seconds / 10);
        AddPoint(static_cast<double>(length), AttentionFlops(bench, length, is_backward) / body,
                 is_backward ? *rates->mutable_backward() : *rates->mutable_forward());
        spreads.push_back(sample.spread);
      }
  }
  target.mutable_measured()->set_attention(MiddleOf(spreads));
  return absl::OkStatus();
}

absl::Status MeasureMemory(KernelBench& bench, double seconds, Target& target) {
  std::vector<double> spreads;
  const double each = seconds / (2 * kMoved);
  for (const uint64_t bytes : SizesFor(bench).moved) {
    FT_ASSIGN_OR_RETURN(const Sample sample, TimeSum(bench, bytes, each));
    const double body = std::max(sample.seconds - target.kernel_latency_s(), sample.seconds / 10);
    AddPoint(static_cast<double>(bytes), static_cast<double>(bytes) / body, *target.mutable_memory());
    spreads.push_back(sample.spread);
  }
  target.set_memory_bytes_per_s(target.memory(target.memory_size() - 1).value());
  std::vector<double> longer;
  for (const uint64_t bytes : SizesFor(bench).moved) {
    FT_ASSIGN_OR_RETURN(const Sample sample, TimeReduction(bench, bytes, each));
    const double body = std::max(sample.seconds - target.kernel_latency_s(), sample.seconds / 10);
    longer.push_back(body / MemorySeconds(target, static_cast<double>(bytes)));
    spreads.push_back(sample.spread);
  }
  target.mutable_stack()->set_reduction_bytes(MiddleOf(longer));
  target.mutable_measured()->set_memory(MiddleOf(spreads));
  return absl::OkStatus();
}

absl::Status MeasureCopies(const CalibrationSession& session, double seconds, Target& target) {
  Device& device = session.device();
  const uint64_t most = kCopied[std::size(kCopied) - 1];
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Memory> on_device, device.Allocate(most));
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Memory> on_host, device.AllocateHost(most));
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, device.CreateStream("copies", 1));
  const CommandInfo info{.title = "calibration", .category = "copy", .instruction = -1};
  std::vector<double> spreads;
  std::vector<TimedBytes> slower;  // of both directions
  for (const uint64_t bytes : kCopied) {
    slower.push_back({.bytes = static_cast<double>(bytes), .seconds = 1e-9});
    for (const bool to_device : {true, false}) {
      // All of both memories: most caches hold less.
      std::vector<std::vector<CopyRegion>> regions;
      for (uint64_t at = 0; at < most; at += bytes) {
        char *here = static_cast<char*>(on_device->data()) + at,
             *there = static_cast<char*>(on_host->data()) + at;
        regions.push_back({{to_device ? there : here, to_device ? here : there, bytes}});
      }
      std::vector<Command> commands;
      for (const std::vector<CopyRegion>& region : regions) commands.push_back(Command::Copy(&region, &info));
      FT_ASSIGN_OR_RETURN(const Sample sample,
                          session.Time(*stream, commands, seconds / (2 * std::size(kCopied))));
      slower.back().seconds =
          std::max(slower.back().seconds, sample.seconds / static_cast<double>(commands.size()));
      spreads.push_back(sample.spread);
    }
  }
  const LinkTime link = FitLink(slower);
  target.mutable_copies()->set_bytes_per_s(link.bytes_per_s);
  target.mutable_copies()->set_latency_s(link.latency);
  target.mutable_measured()->set_copies(MiddleOf(spreads));
  return absl::OkStatus();
}

absl::Status MeasureSustained(KernelBench& bench, double seconds, Target& target) {
  constexpr double kWindow = 1;  // seconds of a sample
  std::vector<double> taken;
  // Equally many on all ranks.
  const int windows = std::max(3, static_cast<int>(seconds / kWindow));
  for (int i = 0; i < windows; ++i) {
    FT_ASSIGN_OR_RETURN(const Sample sample, TimeReference(bench, seconds / windows));
    taken.push_back(sample.seconds);
  }
  const auto third = static_cast<std::ptrdiff_t>(taken.size() / 3);
  const double first = MiddleOf({taken.begin(), taken.begin() + third});
  const double last = MiddleOf({taken.end() - third, taken.end()});
  target.set_sustained(std::clamp(first / last, 0.05, 1.0));
  return absl::OkStatus();
}

}  // namespace ft
