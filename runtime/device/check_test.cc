#include "runtime/device/check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/checked.h"
#include "runtime/device/testing/made_operands.h"

namespace ft {
namespace {

using made::Attributes;
using made::ExpectRefused;
using made::Of;

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
constexpr int64_t kThird = 6148914691236517206;  // (2^64 + 2) / 3

TEST(CheckTest, IntegersAreBoundedBeforeTheyAreUsed) {
  for (const int64_t value : {int64_t{1}, int64_t{7}})
    EXPECT_EQ(*IntIn(Attributes({{"heads", value}}), "heads", 1, 7), value);
  for (const int64_t value : {int64_t{0}, int64_t{8}, int64_t{-1}, kLargest, -kLargest - 1, kThird})
    ExpectRefused(IntIn(Attributes({{"heads", value}}), "heads", 1, 7),
                  "attribute 'heads' must be 1 to 7, got");
  ExpectRefused(IntIn(Attributes({{"heads", 1.0}}), "heads", 1, 7), "an integer");
  ExpectRefused(IntIn(Attributes({}), "heads", 1, 7), "missing");
  EXPECT_FALSE(*Flag(Attributes({}), "causal"));
  EXPECT_TRUE(*Flag(Attributes({{"causal", int64_t{1}}}), "causal"));
  ExpectRefused(Flag(Attributes({{"causal", int64_t{2}}}), "causal"), "0 to 1");
}

TEST(CheckTest, RealsAreFinite) {
  EXPECT_EQ(*FloatIn(Attributes({{"eps", 1e-5}}), "eps"), 1e-5);
  for (const double value : {double(NAN), double(INFINITY), -double(INFINITY), 1e300})
    ExpectRefused(FloatIn(Attributes({{"eps", value}}), "eps"), "finite");
  ExpectRefused(FloatIn(Attributes({{"eps", -1.0}}), "eps", 0.0), "'eps' must be 0 to");
}

TEST(CheckTest, AFillFitsItsType) {
  const auto fill = [](double value, DType dtype) {
    return FillValue(Attributes({{"value", value}}), dtype);
  };
  EXPECT_EQ(*fill(-2147483648.0, DType::kI32), -2147483648.0);
  EXPECT_EQ(*fill(0.5, DType::kBF16), 0.5);
  ExpectRefused(fill(2147483648.0, DType::kI32), "'value' must be");
  ExpectRefused(fill(256.0, DType::kU8), "'value' must be");
  ExpectRefused(fill(-1.0, DType::kU8), "'value' must be");
  ExpectRefused(fill(1e19, DType::kI64), "'value' must be");
  ExpectRefused(fill(0.5, DType::kI64), "cannot hold");
}

TEST(CheckTest, AFlatBufferIsThatOfAUnit) {
  char data = 0;
  const std::vector<ParameterRange> parameters = {{.begin = 0, .end = 4}};
  Tensor tensor = {.data = &data, .dtype = DType::kF32, .rank = 1, .dims = {1024}};
  EXPECT_EQ(CheckFlat(tensor, "slice").message(), "slice is no flat buffer of a unit");
  tensor.parameters = parameters;
  EXPECT_TRUE(CheckFlat(tensor, "slice").ok());
  tensor.rank = 2;
  EXPECT_FALSE(CheckFlat(tensor, "slice").ok());
  tensor = {.parameters = parameters};
  EXPECT_FALSE(CheckFlat(tensor, "slice").ok());
}

TEST(CheckTest, WorkspacesAreAligned) {
  alignas(64) static char data[128];
  KernelOperands operands;
  operands.workspace = {.data = data, .dtype = DType::kU8, .rank = 1, .dims = {64}};
  EXPECT_TRUE(CheckWorkspace(operands, 64).ok());
  EXPECT_FALSE(CheckWorkspace(operands, 65).ok());
  EXPECT_FALSE(CheckWorkspace(operands, kTooLarge).ok());
  operands.workspace.data = data + 8;
  EXPECT_FALSE(CheckWorkspace(operands, 64).ok());
  EXPECT_TRUE(CheckWorkspace(operands, 0).ok());
}

}  // namespace
}  // namespace ft
