// What a report says of a plan: the numbers of ftc explain, in a form that no name of a plan can break out
// of.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <string>

#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "runtime/plan/describe.h"
#include "runtime/plan/report_text.h"
#include "runtime/plan/testing/targets.h"
#include "runtime/plan/testing/tiny_plan.h"
#include "tools/ftc/report/document.h"
#include "tools/ftc/report/limits.h"
#include "tools/ftc/report/plan_columns.h"

namespace ftc {
namespace {

using Json = nlohmann::json;

Explained ExplainedOf(const ft::proto::Plan& plan, int ranks = 2, double launch_s = 0) {
  Explained explained;
  explained.name = "/home/somebody/plan.bin";
  explained.plan = plan;
  explained.target = ft::RoundTarget();
  if (launch_s > 0) explained.target.mutable_stack()->set_launch_s(launch_s);
  const auto mesh = ft::MeshFor(plan, ranks);
  explained.bound = *ft::BindPlan(plan, *mesh, ft::DeviceClass::kCpu);
  explained.report = ft::ReportPlan(plan, explained.bound);
  explained.step = ft::SimulateStep(plan, explained.bound, explained.target);
  explained.cost = StepCostOf(plan, explained.bound, explained.step, explained.target);
  return explained;
}

std::vector<ft::TinyPlanOptions> Kinds() {
  return {{},
          {.shard = false},
          {.whole_parameters = true},
          {.offload = true},
          {.offload = true, .host_step = true}};
}

ReportInput InputOf(const ft::proto::Plan& plan) {
  ReportInput input;
  input.explained.plans.push_back(ExplainedOf(plan));
  input.scaling.push_back({.rows = {RowOf(input.explained.plans[0])}, .left_out = {}});
  return input;
}

TEST(Report, NamesAreTextAndNothingElse) {
  const std::string name =
      "</script><script>alert(1)</script>\xe2\x80\xa8\xe2\x80\xa9\"'&amp;<!-- \\ \xc3\xa4";
  ft::proto::Plan plan = ft::TinyPlan();
  plan.set_model(name);
  plan.mutable_buffers(0)->set_name(name);
  plan.mutable_units(0)->set_name(name);
  plan.mutable_programs(0)->mutable_instructions(0)->set_layer(name);
  const std::string document = ReportDocument(InputOf(plan));
  EXPECT_EQ(document.find('<'), std::string::npos);
  EXPECT_TRUE(std::all_of(document.begin(), document.end(), [](char c) { return c >= 0x20 && c < 0x7f; }));
  const Json read = Json::parse(document)["plans"][0];
  EXPECT_EQ(read["explain"]["model"], name);
  EXPECT_EQ(read["names"][read["buffers"]["name"][0].get<size_t>()], name);
  EXPECT_EQ(read["explain"]["traffic"]["by_unit"][0]["unit"], name);
}

TEST(Report, NamesNoFolder) {
  ReportInput input = InputOf(ft::TinyPlan());
  input.explained.plans.push_back(input.explained.plans[0]);
  input.scaling.push_back(input.scaling[0]);
  input.explained.left_out.push_back({"/home/somebody/else.bin", "why not"});
  const std::string document = ReportDocument(input);
  EXPECT_EQ(document.find("somebody"), std::string::npos);
  const Json read = Json::parse(document);
  EXPECT_EQ(read["plans"][0]["name"], "plan.bin");
  EXPECT_EQ(read["plans"][1]["name"], "plan.bin (2)");
  EXPECT_EQ(read["left_out"][0]["name"], "else.bin");
}

// What the page stacks up at the peak is what explain says lives there.
TEST(Report, BuffersSumToTheArena) {
  for (const ft::TinyPlanOptions& options : Kinds()) {
    const Explained explained = ExplainedOf(ft::TinyPlan(options));
    Names names;
    const Json buffers = BuffersJson(explained, names);
    const ft::BoundArena& device = explained.bound.device;
    std::vector<uint64_t> by_class(ft::proto::MemoryClass_ARRAYSIZE);
    for (size_t i = 0; i < buffers["bytes"].size(); ++i) {
      const bool lives = buffers["persistent"][i] == 1 || (buffers["program"][i] == device.peak_program &&
                                                           buffers["first"][i] <= device.peak_instruction &&
                                                           buffers["last"][i] >= device.peak_instruction);
      if (lives && buffers["space"][i] == 0)
        by_class[buffers["class"][i]] += buffers["bytes"][i].get<uint64_t>();
    }
    const ft::ArenaReport& report = explained.report.memory.device;
    EXPECT_TRUE(std::equal(by_class.begin(), by_class.end(), report.by_class.begin()));
    EXPECT_EQ(std::accumulate(by_class.begin(), by_class.end(), uint64_t{0}), report.max_live_bytes);
  }
}

TEST(Report, PartsOfAStepSumToIt) {
  for (const ft::TinyPlanOptions& options : Kinds()) {
    for (const int ranks : {1, 2, 16}) {
      const Explained explained = ExplainedOf(ft::TinyPlan(options), ranks);
      const StepLimits limits = LimitsOf(explained.plan, explained.bound, explained.target);
      EXPECT_NEAR(limits.total(), explained.step.seconds, 1e-12 * explained.step.seconds);
      EXPECT_NEAR(limits.arithmetic_seconds + limits.memory_seconds, explained.step.compute_seconds, 1e-15);
      double exposed = 0, kernels = 0;
      for (const double seconds : limits.exposed_seconds) exposed += seconds;
      EXPECT_NEAR(exposed, explained.step.exposed_seconds, 1e-15);
      for (const KernelGroup& group : KernelGroups(explained.plan, explained.bound, explained.target))
        kernels += group.total_seconds;
      EXPECT_NEAR(kernels, explained.step.compute_seconds, 1e-15);
    }
  }
}

// What the host is late with is no stream's, also where a transfer was waited for before.
TEST(Report, LaunchesAreAPartOfTheirOwn) {
  for (const ft::TinyPlanOptions& options : Kinds()) {
    const Explained explained = ExplainedOf(ft::TinyPlan(options), 2, 60e-6);
    const StepLimits limits = LimitsOf(explained.plan, explained.bound, explained.target);
    EXPECT_GT(explained.step.launch_seconds, 0);
    EXPECT_NEAR(limits.launch_seconds, explained.step.launch_seconds, 1e-12);
    double exposed = 0;
    for (const double seconds : limits.exposed_seconds) exposed += seconds;
    EXPECT_NEAR(exposed, explained.step.exposed_seconds, 1e-12);
    EXPECT_EQ(limits.exposed_seconds[ft::proto::COMPUTE], 0);
    EXPECT_NEAR(limits.total(), explained.step.seconds, 1e-12);
  }
}

TEST(Report, TheLargestPartLimits) {
  StepLimits limits{.arithmetic_seconds = 1, .memory_seconds = 2};
  EXPECT_EQ(limits.Largest(), "memory");
  limits.exposed_seconds[ft::proto::REDUCE] = 3;
  EXPECT_EQ(limits.Largest(), "reduce");
  limits.tail_seconds = 4;
  EXPECT_EQ(limits.Largest(), "tail");
  limits.arithmetic_seconds = 5;
  EXPECT_EQ(limits.Largest(), "arithmetic");
}

// The machine has 1e11 FLOP/s and 1e10 bytes/s: ten FLOPs for each byte.
TEST(Report, KernelsAreBoundByTheirHigherFloor) {
  ft::proto::Plan plan = ft::TinyPlan();
  auto& instructions = *plan.mutable_programs(1)->mutable_instructions();
  const auto kernel = std::find_if(instructions.begin(), instructions.end(), [](const auto& instruction) {
    return instruction.opcode() == ft::proto::KERNEL && instruction.stream() == ft::proto::COMPUTE;
  });
  ASSERT_NE(kernel, instructions.end());
  kernel->set_kernel("bound_here");
  kernel->set_bytes(1000);
  for (const auto& [flops, bound] :
       {std::pair(uint64_t{10001}, Bound::kArithmetic), {uint64_t{10000}, Bound::kMemory}}) {
    kernel->set_flops(flops);
    const Explained explained = ExplainedOf(plan);
    const std::vector<KernelGroup> groups = KernelGroups(plan, explained.bound, explained.target);
    const auto found = std::find_if(groups.begin(), groups.end(),
                                    [](const KernelGroup& g) { return g.kernel == "bound_here"; });
    ASSERT_NE(found, groups.end());
    EXPECT_EQ(found->bound, bound);
    EXPECT_EQ(found->count, 1u);
  }
}

TEST(Report, UsualSizesGoBeyondTheRanks) {
  EXPECT_EQ(UsualWorldSizes(1).back(), 1024);
  EXPECT_EQ(UsualWorldSizes(4096).back(), 32768);
  EXPECT_EQ(UsualWorldSizes(1).front(), 1);
}

}  // namespace
}  // namespace ftc
