#include "runtime/backends/cuda/device/peak_flops.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"

namespace ft::cuda {
namespace {

struct Peak {
  std::array<std::string_view, 2> words;  // that the name must have; the first line that fits counts
  double bf16, tf32, f32;                 // TFLOP/s; fp16 as bf16
};

// From NVIDIA's data sheets of each product, at boost clock, halved where they count sparsity. Data centre:
// product data sheets (A100, A30, A40, A10, H100, H200, H20, L4, L40, L40S, HGX B200, GB200). GeForce and
// RTX: the appendices of the GA102, AD102 and GB202 architecture white papers, bf16 with FP32 accumulate.
constexpr Peak kPeaks[] = {
    {{"GB200", ""}, 2500, 1250, 80},    {{"B200", ""}, 2250, 1125, 75},
    {{"GH200", ""}, 989.5, 494.7, 67},  {{"H200", "NVL"}, 835.5, 417.5, 60},
    {{"H200", ""}, 989.5, 494.7, 67},   {{"H100", "NVL"}, 835.5, 417.5, 60},
    {{"H100", "PCIe"}, 756, 378, 51},   {{"H100", ""}, 989.5, 494.7, 67},
    {{"H800", "PCIe"}, 756, 378, 51},   {{"H800", ""}, 989.5, 494.7, 67},
    {{"H20", ""}, 148, 74, 44},         {{"A100", ""}, 312, 156, 19.5},
    {{"A800", ""}, 312, 156, 19.5},     {{"A30", ""}, 165, 82, 10.3},
    {{"A40", ""}, 149.7, 74.8, 37.4},   {{"A10", ""}, 125, 62.5, 31.2},
    {{"A10G", ""}, 70, 35, 35},         {{"L40S", ""}, 362, 183, 91.6},
    {{"L40", ""}, 181, 90.5, 90.5},     {{"L4", ""}, 121, 60, 30.3},
    {{"A6000", ""}, 154.8, 77.4, 38.7}, {{"6000", "Ada"}, 364.2, 182.1, 91.1},
    {{"3090", "Ti"}, 80, 40, 40},       {{"3090", ""}, 71, 35.6, 35.6},
    {{"4090", ""}, 165.2, 82.6, 82.6},  {{"5090", ""}, 209.5, 104.8, 104.8},
};

// Of parts of a device, and of variants that share a product's number but not its speed.
constexpr std::string_view kOthers[] = {"MIG", "Laptop", "Mobile", "Max", "D", "vGPU"};

}  // namespace

double PeakFlops(std::string_view name, DType dtype, bool allow_tf32) {
  const std::vector<std::string> words = absl::StrSplit(std::string(name), absl::ByAnyChar(" -"));
  const auto has = [&](std::string_view word) {
    return word.empty() || std::find(words.begin(), words.end(), word) != words.end();
  };
  if (std::any_of(std::begin(kOthers), std::end(kOthers), has)) return 0;
  for (const Peak& peak : kPeaks) {
    if (!has(peak.words[0]) || !has(peak.words[1])) continue;
    switch (dtype) {
      case DType::kBF16:
      case DType::kF16:
        return peak.bf16 * 1e12;
      case DType::kF32:
        return (allow_tf32 ? peak.tf32 : peak.f32) * 1e12;
      default:
        return 0;
    }
  }
  return 0;
}

}  // namespace ft::cuda
