#include "runtime/cost/saved_cost.h"

#include <string>

#include "gtest/gtest.h"
#include "runtime/cost/kernels.h"
#include "runtime/cost/transfers.h"
#include "runtime/plan/testing/targets.h"

namespace ft {
namespace {

TEST(SavedCostTest, DecisionsAreSummedOverLayers) {
  proto::Plan plan;
  const auto add = [&](const char* layer, const char* value, const char* choice, uint64_t bytes,
                       uint64_t flops) {
    proto::Plan::Saved& saved = *plan.add_saved();
    saved.set_layer(layer);
    saved.set_value(std::string(layer) + "." + value);
    saved.set_choice(choice);
    saved.set_bytes(bytes);
    saved.set_flops(flops);
  };
  add("h.0", "gelu", "recompute", 100, 7);
  add("h.1", "gelu", "recompute", 100, 7);
  add("h.0", "matmul", "keep", 300, 9000);
  add("h.1", "matmul", "offload", 300, 9000);
  const Target target = RoundTarget();
  const std::vector<SavedReport> saved = ReportSaved(plan, target);
  ASSERT_EQ(saved.size(), 3u);
  EXPECT_EQ(saved[0].choice, "keep");
  EXPECT_EQ(saved[0].seconds, 0);
  EXPECT_EQ(saved[1].choice, "offload");
  EXPECT_DOUBLE_EQ(saved[1].seconds, 2 * CopySeconds(target, 300));
  EXPECT_EQ(saved[2].value, "gelu");
  EXPECT_EQ(saved[2].count, 2u);
  EXPECT_EQ(saved[2].bytes, 200u);
  EXPECT_EQ(saved[2].flops, 14u);
  EXPECT_DOUBLE_EQ(saved[2].seconds, 2 * KernelSeconds(target, 7, 100, proto::F32));
}

}  // namespace
}  // namespace ft
