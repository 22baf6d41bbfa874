#include "runtime/checkpoint/unused_tensors.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ft {
namespace {

TEST(UnusedTensorsTest, BuffersThatTransformersIgnores) {
  for (const char* name :
       {"h.0.attn.bias", "transformer.h.11.attn.bias", "h.3.attn.masked_bias", "h.0.crossattention.bias",
        "rotary_emb.inv_freq", "model.rotary_emb.inv_freq", "model.layers.0.self_attn.rotary_emb.inv_freq"})
    EXPECT_TRUE(IsIgnoredBuffer(name)) << name;
  for (const char* name :
       {"blocks.0.attn.bias", "h.x.attn.bias", "h.0.attn.c_attn.bias", "attn.bias", "h.0.attn.bias.scale",
        "inv_freq", "model.layers.0.self_attn.q_proj.bias", "", "."})
    EXPECT_FALSE(IsIgnoredBuffer(name)) << name;
}

TEST(UnusedTensorsTest, NamesThatDifferInANumberAreOne) {
  EXPECT_EQ(NamesText({}), "");
  const std::vector<std::string> names = {"a", "h.0.x", "h.10.x", "h.2.x", "h.0.y.0", "h.1.y.1", "..", "12"};
  EXPECT_EQ(NamesText(names), "a, h.*.x (3: 0 to 10), h.0.y.0, h.1.y.1, .., 12");
}

TEST(UnusedTensorsTest, TheListIsBounded) {
  std::vector<std::string> names;
  for (int i = 0; i < 100000; ++i) names.push_back("t" + std::to_string(i));
  names.push_back(std::string(1000000, 'x'));
  EXPECT_LT(NamesText(names).size(), 1000u);
  EXPECT_TRUE(NamesText(names).starts_with("t0, t1, t2, "));
  EXPECT_TRUE(NamesText(names).ends_with(" more")) << NamesText(names);
  EXPECT_LT(NamesText({std::string(1000000, 'x')}).size(), 200u);
  EXPECT_EQ(NamesText({"two\nlines\x1b"}), "two\\nlines\\x1b");
}

}  // namespace
}  // namespace ft
