#include "compiler/remat/policy.h"

#include <gtest/gtest.h>

namespace ft::compiler {
namespace {

using Kind = RematPolicy::Kind;

TEST(RematPolicyTest, ReadsAllForms) {
  EXPECT_EQ(parseRematPolicy("none")->kind, Kind::None);
  EXPECT_EQ(parseRematPolicy("every_n:3")->count, 3);
  EXPECT_EQ(parseRematPolicy("full")->kind, Kind::EveryN);
  EXPECT_EQ(parseRematPolicy("full")->count, 1);
  EXPECT_EQ(parseRematPolicy("segments:4")->kind, Kind::Segments);
  EXPECT_EQ(parseRematPolicy("segments:4")->count, 4);
  EXPECT_EQ(parseRematPolicy("segments:sqrt")->count, 0);
  EXPECT_EQ(parseRematPolicy("segments:0")->count, 0);
  EXPECT_EQ(parseRematPolicy("ops:norms,mlp")->classes, (std::vector<std::string>{"norms", "mlp"}));
  EXPECT_EQ(parseRematPolicy("budget:8589934592")->bytes, uint64_t{1} << 33);
}

std::string refusal(std::string_view text) { return std::string(parseRematPolicy(text).status().message()); }

TEST(RematPolicyTest, SaysWhatWasMeant) {
  EXPECT_EQ(refusal("ful"), "unknown recomputation policy 'ful', did you mean 'full'?");
  EXPECT_EQ(refusal("evry_n:2"), "unknown recomputation policy 'evry_n', did you mean 'every_n'?");
  EXPECT_EQ(refusal("ops:attension"), "unknown class of ops 'attension', did you mean 'attention'?");
  EXPECT_EQ(refusal("ops:"), "unknown class of ops '', expected one of: attention, mlp, norms");
  EXPECT_EQ(refusal("every_n:0"),
            "recomputation policy 'every_n:0': expected every_n:N, N layers in a group");
  EXPECT_EQ(refusal("every_n"), "recomputation policy 'every_n:': expected every_n:N, N layers in a group");
  EXPECT_EQ(refusal("segments:-1"),
            "recomputation policy 'segments:-1': expected segments:K, K groups of layers, or segments:sqrt");
  EXPECT_EQ(refusal("budget:much"),
            "recomputation policy 'budget:much': expected budget:BYTES, the bytes that a rank may use");
  EXPECT_EQ(refusal("full:2"), "recomputation policy 'full' takes nothing after a colon");
}

} // namespace
} // namespace ft::compiler
