#include "runtime/base/content_hash.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace ft {
namespace {

std::vector<uint8_t> Bytes(size_t count) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < count; ++i) bytes.push_back(static_cast<uint8_t>(i * i * 31 + i * 7 + 3));
  return bytes;
}

// By the reference library, 0.8.1.
TEST(ContentHash, IsXxh64) {
  const std::pair<size_t, uint64_t> known[] = {
      {0, 0xef46db3751d8e999},   {1, 0x1f25c8d0bc1f4bb6},   {3, 0xa020f3294a68c3b2},
      {4, 0x9a05810a0d610553},   {7, 0x85b3be277ada6206},   {8, 0xe400a21c7735e336},
      {11, 0x8e072e57eb1bafcf},  {12, 0xfee2c2b08b6c74e8},  {15, 0x9891c82a12466947},
      {31, 0x799631c30d7e3922},  {32, 0x6b7ead39b05fcc7c},  {33, 0xb6d285b00d90e573},
      {39, 0x8dcb915bfbfcd63b},  {63, 0x765796fdb42cab38},  {64, 0x7a9871c22557878c},
      {100, 0xb261bdbad1498f82}, {999, 0x8a62c9528c216c7f}, {1000, 0xb1fe4b92992ed62}};
  for (const auto& [count, hash] : known) EXPECT_EQ(ContentHashOf(Bytes(count)), hash) << count;
}

TEST(ContentHash, DoesNotDependOnThePieces) {
  const std::vector<uint8_t> bytes = Bytes(500);
  for (size_t first = 0; first <= 100; ++first) {
    for (size_t step : {1, 7, 31, 32, 33, 64, 400}) {
      ContentHash hash;
      hash.Update(absl::MakeConstSpan(bytes).first(first));
      for (size_t at = first; at < bytes.size(); at += step)
        hash.Update(absl::MakeConstSpan(bytes).subspan(at, step));
      ASSERT_EQ(hash.Digest(), ContentHashOf(bytes)) << first << " " << step;
    }
  }
}

}  // namespace
}  // namespace ft
