#include "runtime/base/convert_elements.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace ft {
namespace {

TEST(ConvertElementsTest, ConversionsRoundToNearestEvenAndCountWhatOverflows) {
  // Halfway between two bf16 is the even one; 70000 is no binary16; infinity was none before.
  const std::vector<float> in = {1.00390625f, 1.01171875f, 70000.0f, std::numeric_limits<float>::infinity()};
  const auto* bytes = reinterpret_cast<const std::byte*>(in.data());
  std::vector<uint16_t> out(in.size());
  EXPECT_EQ(
      ConvertElements(DType::kF32, bytes, DType::kBF16, reinterpret_cast<std::byte*>(out.data()), in.size()),
      0u);
  EXPECT_EQ(out[0], 0x3F80);
  EXPECT_EQ(out[1], 0x3F82);
  EXPECT_EQ(
      ConvertElements(DType::kF32, bytes, DType::kF16, reinterpret_cast<std::byte*>(out.data()), in.size()),
      1u);
  EXPECT_EQ(out[2], 0x7C00);
  std::vector<float> back(in.size());
  ConvertElements(DType::kF16, reinterpret_cast<const std::byte*>(out.data()), DType::kF32,
                  reinterpret_cast<std::byte*>(back.data()), 2);
  EXPECT_EQ(back[0], 1.00390625f);
}

}  // namespace
}  // namespace ft
