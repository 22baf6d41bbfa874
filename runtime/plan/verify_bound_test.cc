// Damage in the addresses of a bound plan, and every world size.
#include "runtime/plan/verify_bound.h"

#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/plan/testing/tiny_plan.h"
#include "runtime/plan/verify_worlds.h"

namespace ft {
namespace {

const TinyPlanOptions kSharded = {.shard = true};
const TinyPlanOptions kReplicated = {.shard = false};
const TinyPlanOptions kWhole = {.shard = true, .whole_parameters = true};
const TinyPlanOptions kHybrid = {.shard = true, .two_axes = true};
const TinyPlanOptions kOffloaded = {.shard = true, .offload = true};
const TinyPlanOptions kHybridWhole = {.shard = true, .whole_parameters = true, .two_axes = true};

struct AddressDamage {
  const char* name;
  TinyPlanOptions plan;
  const char* message;
  std::function<void(const proto::Plan&, BoundPlan&)> apply;
};

void PrintTo(const AddressDamage& damage, std::ostream* out) { *out << damage.name; }

class AddressDamageTest : public testing::TestWithParam<AddressDamage> {};

TEST_P(AddressDamageTest, IsRefusedByName) {
  const proto::Plan plan = TinyPlan(GetParam().plan);
  for (const DeviceClass device : kDeviceClasses) {
    BoundPlan bound = *BindPlan(plan, *MeshFor(plan, 4), device);
    ASSERT_EQ(VerifyBound(plan, bound), absl::OkStatus()) << "before the damage, on " << Name(device);
    GetParam().apply(plan, bound);
    const absl::Status status = VerifyBound(plan, bound);
    ASSERT_FALSE(status.ok()) << Name(device);
    EXPECT_NE(std::string(status.message()).find(GetParam().message), std::string::npos) << status.message();
  }
}

std::vector<AddressDamage> AddressDamages() {
  const auto at = [](const proto::Plan& p, BoundPlan& b, const char* name) -> uint64_t& {
    return b.offsets[BufferIndex(p, name)];
  };
  return {
      {"Overlap", kSharded,
       "share bytes while both live, at train_step, instruction 3 (linear_cross_entropy_loss_grad, layer "
       "bigram)",
       [=](auto& p, auto& b) { at(p, b, "dx") = at(p, b, "scratch"); }},
      {"OverlapInside", kSharded, "buffer 'scratch'",
       [=](auto& p, auto& b) { at(p, b, "x") = at(p, b, "scratch") + 256; }},
      {"OverlapOfPersistent", kSharded, "share bytes while both live, always",
       [=](auto& p, auto& b) { at(p, b, "exp_avg") = at(p, b, "parameters"); }},
      {"OverlapWithPersistent", kSharded,
       "share bytes while both live, at train_step, instruction 0 (all_gather bigram)",
       [=](auto& p, auto& b) { at(p, b, "gathered") = at(p, b, "exp_avg"); }},
      {"OverlapInInit", kOffloaded, "share bytes while both live, at init, instruction 1 (fill",
       [=](auto& p, auto& b) { at(p, b, "zero_exp_avg") = at(p, b, "zero_exp_avg_sq"); }},
      {"OverlapInHost", kOffloaded, "buffer 'exp_avg' (bytes 0 to 8192)",
       [=](auto& p, auto& b) { at(p, b, "exp_avg_sq") = 256; }},
      {"Outside", kSharded, "leaves the arena of",
       [=](auto& p, auto& b) { at(p, b, "exp_avg") = b.device.arena_bytes; }},
      {"ArenaTooSmall", kSharded, "leaves the arena of",
       [=](auto&, auto& b) { b.device.arena_bytes -= 256; }},
      {"HostArenaTooSmall", kOffloaded, "buffer 'exp_avg_sq'",
       [=](auto&, auto& b) { b.host.arena_bytes -= 256; }},
      {"Alignment", kSharded, "buffer 'exp_avg' begins at",
       [=](auto& p, auto& b) { at(p, b, "exp_avg") += 128; }},
      {"Size", kSharded, "buffer 'gathered' has 4096 bytes, not 32768",
       [=](auto& p, auto& b) { b.sizes[BufferIndex(p, "gathered")] = 4096; }},
      {"Slice", kSharded, "a slice of unit 'bigram' has 1024 elements",
       [=](auto&, auto& b) { b.slices[0] = 1024; }},
      {"OtherPlan", kSharded, "they are for another plan", [=](auto&, auto& b) { b.offsets.pop_back(); }},
      {"OtherMesh", kSharded, "a slice of unit 'bigram'", [=](auto&, auto& b) { b.mesh.shard = 2; }},
  };
}

std::string NameOfAddress(const testing::TestParamInfo<AddressDamage>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Addresses, AddressDamageTest, testing::ValuesIn(AddressDamages()), NameOfAddress);

TEST(VerifyWorldsTest, EveryWorldBinds) {
  for (const TinyPlanOptions& options : {kSharded, kReplicated, kWhole, kHybrid, kOffloaded, kHybridWhole}) {
    const proto::Plan plan = TinyPlan(options);
    const std::vector<Mesh> all = AllMeshes(plan);
    EXPECT_EQ(all.size(), 4096u);
    EXPECT_EQ(VerifyWorlds(plan, all), absl::OkStatus());
    EXPECT_EQ(VerifyWorlds(plan, SampleMeshes(plan)), absl::OkStatus());
  }
}

// Scratch has room for the kernels of one device only.
TEST(VerifyBoundTest, SizesAreThoseOfTheDevice) {
  const proto::Plan plan = TinyPlan(kSharded);
  for (const DeviceClass device : kDeviceClasses) {
    BoundPlan bound = *BindPlan(plan, *MeshFor(plan, 4), device);
    bound.device_class = device == DeviceClass::kCpu ? DeviceClass::kCuda : DeviceClass::kCpu;
    const std::string message(VerifyBound(plan, bound).message());
    EXPECT_NE(message.find("buffer 'scratch' has "), std::string::npos) << message;
  }
}

TEST(VerifyWorldsTest, LooksAtBothDevices) {
  proto::Plan plan = TinyPlan();
  plan.mutable_buffers(BufferIndex(plan, "positions"))->set_cuda_bytes(~uint64_t{0});  // not verified
  EXPECT_EQ(std::string(VerifyWorlds(plan, {{1, 4}}).message())
                .rfind("on mesh replica:1,shard:4, device cuda: ", 0),
            0u);
}

TEST(VerifyWorldsTest, NamesTheMesh) {
  proto::Plan plan = TinyPlan();
  plan.mutable_units(0)->set_elements(uint64_t{1} << 60);  // not verified
  EXPECT_EQ(
      std::string(VerifyWorlds(plan, {{1, 4}}).message()).rfind("on mesh replica:1,shard:4, device cpu: ", 0),
      0u);
}

}  // namespace
}  // namespace ft
