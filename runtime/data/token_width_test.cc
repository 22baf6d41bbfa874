#include "runtime/data/token_width.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace ft {
namespace {

constexpr IntegerLayout kU16 = {.bytes = 2}, kU32 = {.bytes = 4}, kI64 = {.bytes = 8};
constexpr IntegerLayout kBigU16 = {2, true}, kBigU32 = {4, true}, kBigI64 = {8, true};

std::vector<uint8_t> Bytes(const std::vector<uint64_t>& tokens, IntegerLayout layout) {
  std::vector<uint8_t> bytes;
  for (const uint64_t token : tokens) {
    for (int i = 0; i < layout.bytes; ++i)
      bytes.push_back(static_cast<uint8_t>(token >> 8 * (layout.big_endian ? layout.bytes - 1 - i : i)));
  }
  return bytes;
}

// As a tokenizer gives them: low numbers are frequent.
std::vector<uint64_t> Tokens(int64_t vocab_size, int count, unsigned seed = 1) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<uint64_t> tokens;
  for (int i = 0; i < count; ++i) {
    const double x = uniform(random);
    tokens.push_back(static_cast<uint64_t>(static_cast<double>(vocab_size) * x * x * x));
  }
  return tokens;
}

TEST(TokenWidth, UInt16IsLeftAlone) {
  for (const int64_t vocab : {2, 4, 10, 65, 256, 300, 50257, 65536, 128256}) {
    for (unsigned seed = 0; seed < 200; ++seed) {
      const auto tokens = Tokens(std::min<int64_t>(vocab, 65536), 40 + 20 * static_cast<int>(seed), seed);
      EXPECT_EQ(GuessLayout(Bytes(tokens, kU16), 2, vocab), kU16) << vocab << " " << seed;
    }
  }
}

TEST(TokenWidth, DocumentsFilledUpWithZerosAreLeftAlone) {
  std::vector<uint64_t> tokens;
  for (unsigned document = 0; document < 50; ++document) {
    const auto text = Tokens(50257, 20 + static_cast<int>(document), document);
    tokens.insert(tokens.end(), text.begin(), text.end());
    tokens.resize(128 * (document + 1), 0);
  }
  EXPECT_EQ(GuessLayout(Bytes(tokens, kU16), 2, 50257), kU16);
  tokens.assign(5000, 0);  // nothing but zeros says nothing
  EXPECT_EQ(GuessLayout(Bytes(tokens, kU16), 2, 50257), kU16);
}

TEST(TokenWidth, WiderIntegersAreFoundOut) {
  for (const int64_t vocab : {4, 65, 256, 50257, 65537, 128256, 151936, 256000}) {
    for (unsigned seed = 0; seed < 50; ++seed) {
      const auto tokens = Tokens(vocab, 200, seed);
      for (const IntegerLayout layout : {kU32, kBigU32, kI64, kBigI64})
        EXPECT_EQ(GuessLayout(Bytes(tokens, layout), 2, vocab), layout) << vocab << " " << LayoutText(layout);
      for (const IntegerLayout layout : {kI64, kBigI64})
        EXPECT_EQ(GuessLayout(Bytes(tokens, layout), 4, vocab), layout) << vocab << " " << LayoutText(layout);
      EXPECT_EQ(GuessLayout(Bytes(tokens, kU32), 4, vocab), kU32) << vocab;
    }
  }
}

TEST(TokenWidth, AFileCutOffIsFoundOutAllTheSame) {
  auto bytes = Bytes(Tokens(50257, 300), kU32);
  bytes.resize(bytes.size() - 2);
  EXPECT_EQ(GuessLayout(bytes, 2, 50257), kU32);
}

TEST(TokenWidth, SixteenTokensAreWanted) {
  EXPECT_EQ(GuessLayout(Bytes(std::vector<uint64_t>(15, 9), kU32), 2, 100), kU16);
  EXPECT_EQ(GuessLayout(Bytes(std::vector<uint64_t>(16, 9), kU32), 2, 100), kU32);
}

TEST(TokenWidth, LayoutsByWhichAllTokensFit) {
  const auto tokens = Tokens(50257, 500);
  for (const IntegerLayout layout : {kBigU16, kU32, kBigU32})
    EXPECT_EQ(LayoutThatFits(Bytes(tokens, layout), 2, 50257), layout) << LayoutText(layout);
  for (const IntegerLayout layout : {kU16, kBigU16, kBigU32})
    EXPECT_EQ(LayoutThatFits(Bytes(tokens, layout), 4, 50257), layout) << LayoutText(layout);
  EXPECT_EQ(LayoutThatFits(Bytes({60000, 0xffff, 3}, kU16), 2, 50257), kU16);
}

TEST(TokenWidth, Names) {
  EXPECT_EQ(LayoutText(kU16), "uint16");
  EXPECT_EQ(LayoutText(kBigU32), "big-endian uint32");
  EXPECT_EQ(LayoutText(kI64), "64-bit integers");
}

}  // namespace
}  // namespace ft
