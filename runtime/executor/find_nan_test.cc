#include "runtime/executor/find_nan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/backends/cpu/cpu_kernel.h"
#include "runtime/backends/cpu/device/cpu_device.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/plan_communicators.h"
#include "runtime/collective/testing/test_world.h"
#include "runtime/kernels/gradient_norm/operands.h"
#include "runtime/plan/plan_clusters.h"
#include "runtime/plan/testing/plan_parts.h"

namespace ft {
namespace {

using plan_parts::At;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr uint64_t kElements = 4;

// Kernels of four f32: "values" writes an attribute; "add", "max" and "div" take two operands; "into" adds to
// what is there; "sum_squares" gives an integer that says whether they were finite, to "clip_coefficient",
// which gives norm and coefficient; "order" gives an integer, too; "aside" makes what it takes NaN.
class TestKernel final : public CpuKernel {
 public:
  TestKernel(std::string name, KernelOperands operands, std::vector<double> values)
      : name_(std::move(name)), operands_(std::move(operands)), values_(std::move(values)) {}

  void Run() override {
    if (name_ == "clip_coefficient") {
      *operands_.out[0].as<float>() = *operands_.in[0].as<int64_t>() == 0 ? 1.0f : static_cast<float>(kInf);
      *operands_.out[1].as<float>() = 0.5f;
      return;
    }
    if (name_ == "aside") std::fill_n(operands_.in[0].as<float>(), kElements, static_cast<float>(kNan));
    if (name_ == "sum_squares" || name_ == "order") {
      const float* const x = operands_.in[0].as<float>();
      const bool finite = std::all_of(x, x + kElements, [](float value) { return std::isfinite(value); });
      *operands_.out[0].as<int64_t>() = finite ? 0 : 1;
      return;
    }
    float* const out = operands_.out[0].as<float>();
    for (uint64_t i = 0; i < kElements; ++i) {
      const float a = operands_.in.empty() ? 0 : operands_.in[0].as<float>()[i];
      const bool has_b = operands_.in.size() == 2 && operands_.in[1].dtype == DType::kF32;
      const float b = has_b ? operands_.in[1].as<float>()[i] : 0;
      out[i] = name_ == "values" ? static_cast<float>(values_[i])
               : name_ == "add"  ? a + b
               : name_ == "max"  ? std::fmax(a, b)
               : name_ == "div"  ? a / b
                                 : out[i] + a;
    }
  }

 private:
  const std::string name_;
  const KernelOperands operands_;
  const std::vector<double> values_;
};

template <const char* kName>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelOperands& operands,
                                             const KernelAttributes& attributes, const KernelEnvironment&) {
  std::vector<double> values;
  if (attributes.Has("values")) {
    FT_ASSIGN_OR_RETURN(values, attributes.Reals("values"));
  }
  return std::make_unique<TestKernel>(kName, operands, values);
}

constexpr char kValues[] = "values", kAdd[] = "add", kMax[] = "max", kDiv[] = "div", kInto[] = "into",
               kOrder[] = "order", kAside[] = "aside";

class FindNanTest : public ::testing::Test {
 protected:
  FindNanTest() {
    kernels_.Add(kValues, &Make<kValues>);
    kernels_.Add(kAdd, &Make<kAdd>);
    kernels_.Add(kMax, &Make<kMax>);
    kernels_.Add(kDiv, &Make<kDiv>);
    kernels_.Add(kInto, &Make<kInto>);
    kernels_.Add(kOrder, &Make<kOrder>);
    kernels_.Add(kAside, &Make<kAside>);
    kernels_.Add(kSumSquaresKernel, &Make<kSumSquaresKernel>);
    kernels_.Add(kClipCoefficientKernel, &Make<kClipCoefficientKernel>);
    kernels_.Add(kUpdateKernel, &Make<kUpdateKernel>);
    micro_ = plan_.add_programs();
    micro_->set_name("train_micro");
    step_ = plan_.add_programs();
    step_->set_name("train_step");
    plan_.set_micro_steps(2);
    loss_ = Persistent("loss");
    plan_parts::AddPort(step_->mutable_outputs(), "loss", Floats(loss_));
  }

  uint32_t Buffer(const std::string& name) {
    proto::Buffer* buffer = plan_.add_buffers();
    buffer->set_name(name);
    buffer->mutable_size()->set_value(kElements * sizeof(float));
    buffer->set_program(1);
    buffer->set_last(100);
    return static_cast<uint32_t>(plan_.buffers_size() - 1);
  }
  uint32_t Persistent(const std::string& name) {
    const uint32_t buffer = Buffer(name);
    plan_.mutable_buffers(static_cast<int>(buffer))->set_persistent(true);
    return buffer;
  }
  static proto::Operand Floats(uint32_t buffer) { return At(buffer, proto::F32, {kElements}); }

  // A result of its own.
  uint32_t Do(const char* name, const std::vector<uint32_t>& in, std::vector<double> values = {},
              std::optional<uint32_t> to = {}) {
    const uint32_t out = to.has_value() ? *to : Buffer(name);
    Add(step_, name, in, out, values);
    return out;
  }
  static void Add(proto::Program* program, const char* name, const std::vector<uint32_t>& in, uint32_t out,
                  const std::vector<double>& values = {}) {
    proto::Instruction* kernel = plan_parts::Kernel(program, name, {}, {Floats(out)});
    kernel->set_phase("forward");
    for (const uint32_t buffer : in) *kernel->add_in() = Floats(buffer);
    if (values.empty()) return;
    proto::Attribute* attribute = kernel->add_attributes();
    attribute->set_name("values");
    for (const double value : values) attribute->mutable_reals()->add_values(value);
  }
  void Loss(uint32_t from) { Do(kAdd, {from, Do(kValues, {}, {0, 0, 0, 0})}, {}, loss_); }

  // Replays the step on the plan as it is; `state` is what the first persistent buffer behind the loss holds.
  NanFinding Find(const std::vector<float>& state = {}) {
    const BoundPlan bound = *BindPlan(plan_, {1, 1}, DeviceClass::kCpu);
    CpuDevice device(kernels_, {});
    auto executor = Executor::Create(plan_, bound, device, {}, 0);
    EXPECT_TRUE(executor.ok()) << executor.status();
    if (!state.empty()) {
      const absl::Status written = (*executor)->Write((*executor)->operands().Address(loss_ + 1),
                                                      state.data(), state.size() * sizeof(float));
      EXPECT_TRUE(written.ok());
    }
    NanTrace trace(plan_, **executor);
    for (int program = 0; program < 2; ++program) {
      const absl::Status status = trace.Replay(program, program);
      EXPECT_TRUE(status.ok()) << status;
    }
    if (coefficient_.has_value())
      value_ = *static_cast<float*>(static_cast<void*>((*executor)->operands().Address(*coefficient_)));
    return FindingOf(plan_, trace);
  }

  proto::Plan plan_;
  proto::Program *micro_ = nullptr, *step_ = nullptr;
  uint32_t loss_ = 0;
  std::optional<uint32_t> coefficient_;
  float value_ = 0;  // of the coefficient, in the end
  KernelRegistry kernels_;
};

TEST_F(FindNanTest, NamesWhatMadeItAndNotWhatTookIt) {
  const uint32_t zero = Do(kValues, {}, {1, 0, 2, 0});
  Loss(Do(kAdd, {Do(kDiv, {zero, zero}), zero}));
  const NanFinding found = Find();
  EXPECT_EQ(found.kind, NanFinding::Kind::kOwn);
  EXPECT_EQ(
      found.text,
      "micro-step 2, layer bigram, div (forward, train_step 1): 2 of 4 elements are NaN, first at 1; its "
      "inputs were finite");
  EXPECT_EQ(found.micro_step, 1);
  EXPECT_EQ(found.instruction, 1);
}

TEST_F(FindNanTest, WhatDoesNotGetIntoTheLossIsNoFault) {
  const uint32_t mask = Do(kValues, {}, {-kInf, -kInf, 0, 0}), one = Do(kValues, {}, {1, 1, 1, 1});
  const uint32_t zero = Do(kValues, {}, {0, 0, 0, 0});
  const uint32_t lost = Do(kDiv, {zero, zero});
  Loss(Do(kMax, {Do(kMax, {mask, one}), lost}));  // max of NaN and a number is the number
  EXPECT_EQ(Find().kind, NanFinding::Kind::kNothing);
}

TEST_F(FindNanTest, AMaskIsNotNamedForNanThatIsMadeBesideIt) {
  const uint32_t mask = Do(kValues, {}, {-kInf, 0, 0, 0}), zero = Do(kValues, {}, {0, 0, 0, 0});
  const uint32_t bad = Do(kDiv, {zero, zero});
  Loss(Do(kAdd, {Do(kMax, {mask, zero}), bad}));
  EXPECT_EQ(
      Find().text,
      "micro-step 2, layer bigram, div (forward, train_step 2): 4 of 4 elements are NaN, first at 0; its "
      "inputs were finite");
}

TEST_F(FindNanTest, NanOfInfinityNamesBoth) {
  const uint32_t a = Do(kValues, {}, {1, 1, -1, 1}), b = Do(kValues, {}, {1, 0, 0, 2});
  const uint32_t inf = Do(kDiv, {a, b});
  Loss(Do(kDiv, {inf, inf}));
  EXPECT_EQ(
      Find().text,
      "micro-step 2, layer bigram, div (forward, train_step 2): 2 of 4 elements are infinite, first at 1; "
      "its inputs were finite; then micro-step 2, layer bigram, div (forward, train_step 3): 2 of 4 "
      "elements are NaN, first at 1");
  EXPECT_EQ(Find().instruction, 3);  // the time that counts, as the first may be a mask
}

TEST_F(FindNanTest, AMaskIsToldAndNotBlamedForAnOverflowBesideIt) {
  const uint32_t mask = Do(kValues, {}, {-kInf, 3e38, 0, 0}), big = Do(kValues, {}, {0, 3e38, 0, 0});
  const uint32_t scores = Do(kAdd, {mask, big}), zero = Do(kValues, {}, {0, 0, 0, 0});
  Loss(Do(kMax, {scores, zero}));
  const NanFinding found = Find();
  EXPECT_EQ(
      found.text,
      "micro-step 2, layer bigram, values (forward, train_step 0): 1 of 4 elements is infinite, first at 0; "
      "its inputs were finite; then micro-step 2, layer bigram, add (forward, train_step 2): 2 of 4 elements "
      "are infinite, first at 0");
  EXPECT_EQ(found.instruction, 2);
}

TEST_F(FindNanTest, IntegersOfAMaskCarryNothing) {
  const uint32_t mask = Do(kValues, {}, {-kInf, 0, 0, 0}), order = Buffer("order");
  plan_parts::Kernel(step_, kOrder, {Floats(mask)}, {At(order, proto::I64, {1})});
  const uint32_t bad = Buffer("bad");
  proto::Instruction* kernel = plan_parts::Kernel(
      step_, kDiv, {Floats(Do(kValues, {}, {0, 0, 0, 0})), At(order, proto::I64, {1})}, {Floats(bad)});
  kernel->set_phase("backward");
  Loss(bad);
  EXPECT_EQ(
      Find().text,
      "micro-step 2, layer bigram, div (backward, train_step 3): 4 of 4 elements are NaN, first at 0; its "
      "inputs were finite");
}

TEST_F(FindNanTest, WhatWasThereBeforeIsNamed) {
  const uint32_t state = Persistent("table");
  Loss(Do(kAdd, {state, Do(kValues, {}, {1, 1, 1, 1})}));
  EXPECT_EQ(Find({1, 2, static_cast<float>(kNan), 4}).text,
            "micro-step 2, layer bigram, add (forward, train_step 1): 1 of 4 elements is NaN, first at 2; "
            "'table' was not finite before");
  plan_parts::AddPort(step_->mutable_inputs(), "pixels", Floats(state));
  EXPECT_EQ(Find({1, 2, static_cast<float>(kNan), 4}).text,
            "micro-step 2, layer bigram, add (forward, train_step 1): 1 of 4 elements is NaN, first at 2; "
            "input 'pixels' was not finite before");
  plan_.add_units()->set_name("u");
  plan_.mutable_units(0)->set_elements(1024);
  proto::Buffer* buffer = plan_.mutable_buffers(static_cast<int>(state));
  buffer->set_class_(proto::PARAMETERS);
  buffer->mutable_size()->set_kind(proto::SizeExpr::UNIT_FULL);
  buffer->mutable_size()->set_value(sizeof(float));
  plan_.set_block_elements(1024);
  step_->clear_inputs();
  for (const uint64_t offset : {0, 2}) {
    proto::Parameter* parameter = plan_.add_parameters();
    parameter->set_name(offset == 0 ? "bias" : "weight");
    parameter->add_shape(2);
    parameter->set_offset(offset);
  }
  EXPECT_EQ(Find({1, 2, static_cast<float>(kNan), 4}).text,
            "micro-step 2, layer bigram, add (forward, train_step 1): 1 of 4 elements is NaN, first at 2; "
            "parameter 'weight' was not finite before");
}

TEST_F(FindNanTest, SumsCarryWhatAnEarlierMicroStepHasMade) {
  const uint32_t sum = Persistent("sum"), zero = Persistent("zero"), bad = Persistent("bad");
  Add(micro_, kDiv, {zero, zero}, bad);
  Add(micro_, kInto, {bad}, sum);
  Do(kInto, {Do(kValues, {}, {1, 1, 1, 1})}, {}, sum);
  Loss(sum);
  const NanFinding found = Find();
  EXPECT_EQ(
      found.text,
      "micro-step 1, layer bigram, div (forward, train_micro 0): 4 of 4 elements are NaN, first at 0; its "
      "inputs were finite");
  EXPECT_EQ(found.micro_step, 0);
}

// The earlier one is named whatever the later one adds.
TEST_F(FindNanTest, SumsCarryItAlsoWhereTheNextMicroStepIsBad) {
  const uint32_t sum = Persistent("sum"), zero = Persistent("zero"), bad = Persistent("bad");
  Add(micro_, kDiv, {zero, zero}, bad);
  Add(micro_, kInto, {bad}, sum);
  const uint32_t next = Do(kValues, {}, {kInf, kInf, kInf, kInf});
  Do(kInto, {next}, {}, sum);
  Loss(sum);
  EXPECT_EQ(Find().micro_step, 0);
  EXPECT_EQ(Find().instruction, 0);
  for (double& value :
       *step_->mutable_instructions(0)->mutable_attributes(0)->mutable_reals()->mutable_values())
    value = kNan;
  EXPECT_EQ(Find().micro_step, 0);
}

TEST_F(FindNanTest, SumsOfBothInfinitiesTellTheEarlier) {
  const uint32_t sum = Persistent("sum"), zero = Persistent("zero"), bad = Persistent("bad"),
                 one = Persistent("one");
  Add(micro_, kValues, {}, one, {1, 1, 1, 1});
  Add(micro_, kDiv, {one, zero}, bad);
  Add(micro_, kInto, {bad}, sum);
  Do(kInto, {Do(kValues, {}, {-kInf, -kInf, -kInf, -kInf})}, {}, sum);
  Loss(sum);
  EXPECT_EQ(Find().text,
            "micro-step 1, layer bigram, div (forward, train_micro 1): 4 of 4 elements are infinite, first "
            "at 0; its "
            "inputs were finite; then micro-step 2, layer bigram, into (forward, train_step 1): 4 of 4 "
            "elements are "
            "NaN, first at 0");
}

// What lies in the middle of a larger tensor is looked at apart from it.
TEST_F(FindNanTest, PartsOfATensorAreLookedAtByThemselves) {
  const uint32_t wide = Buffer("wide");
  plan_.mutable_buffers(static_cast<int>(wide))->mutable_size()->set_value(2 * kElements * sizeof(float));
  const auto part = [&](uint64_t at) {
    return plan_parts::At(wide, proto::F32, {kElements}, at * sizeof(float));
  };
  Add(step_, kValues, {}, wide, {-kInf, 0, 0, 0});
  Add(step_, kValues, {}, wide, {0, 0, 0, 0});
  *step_->mutable_instructions(1)->mutable_out(0) = part(kElements);
  const uint32_t bad = Buffer("bad");
  plan_parts::Kernel(step_, kDiv, {part(2), part(2)}, {Floats(bad)})->set_phase("forward");
  Loss(bad);
  EXPECT_EQ(
      Find().text,
      "micro-step 2, layer bigram, div (forward, train_step 2): 4 of 4 elements are NaN, first at 0; its "
      "inputs were finite");
}

TEST_F(FindNanTest, WhatLeavesNoTraceIsSaidToBeBadAgain) {
  Loss(Do(kValues, {}, {0, 0, 0, 0}));
  Do(kAside, {loss_});
  EXPECT_EQ(Find().kind, NanFinding::Kind::kLost);
}

TEST_F(FindNanTest, AProgramThatUpdatesAndHasNoCoefficientIsNotReplayed) {
  plan_parts::Kernel(step_, kUpdateKernel, {}, {Floats(loss_)});
  const BoundPlan bound = *BindPlan(plan_, {1, 1}, DeviceClass::kCpu);
  CpuDevice device(kernels_, {});
  auto executor = Executor::Create(plan_, bound, device, {}, 0);
  ASSERT_TRUE(executor.ok()) << executor.status();
  NanTrace trace(plan_, **executor);
  EXPECT_TRUE(trace.Replay(0, 0).ok());
  EXPECT_EQ(
      trace.Replay(1, 1),
      absl::InternalError("the plan's train_step updates parameters and has no clip_coefficient: it cannot "
                          "be replayed without being applied"));
}

TEST_F(FindNanTest, IntegersCarryItToTheNormAndNothingIsApplied) {
  const uint32_t zero = Do(kValues, {}, {0, 0, 0, 0});
  const uint32_t gradient = Do(kDiv, {zero, zero}), count = Buffer("count"), norm = Persistent("norm");
  coefficient_ = Persistent("coefficient");
  plan_parts::Kernel(step_, kSumSquaresKernel, {Floats(gradient)}, {At(count, proto::I64, {1})});
  plan_parts::Kernel(step_, kClipCoefficientKernel, {At(count, proto::I64, {1})},
                     {At(norm, proto::F32, {}), At(*coefficient_, proto::F32, {})});
  plan_parts::AddPort(step_->mutable_outputs(), "grad_norm", At(norm, proto::F32, {}));
  Loss(zero);
  EXPECT_EQ(
      Find().text,
      "micro-step 2, layer bigram, div (forward, train_step 1): 4 of 4 elements are NaN, first at 0; its "
      "inputs were finite");
  EXPECT_TRUE(std::isnan(value_));
}

TEST_F(FindNanTest, WhatLayInTheMemoryBeforeIsForgotten) {
  const uint32_t zero = Do(kValues, {}, {0, 0, 0, 0});
  const uint32_t lost = Do(kDiv, {zero, zero});
  const uint32_t sum = Buffer("sum");
  Do(kInto, {zero}, {}, sum);
  Loss(sum);
  // Both lie in one place; what is added to has NaN of another life in it, as nothing else of a plan has.
  plan_.mutable_buffers(static_cast<int>(lost))->set_first(1);
  plan_.mutable_buffers(static_cast<int>(lost))->set_last(1);
  plan_.mutable_buffers(static_cast<int>(sum))->set_first(2);
  plan_.set_micro_steps(1);
  EXPECT_EQ(
      Find().text,
      "layer bigram, into (forward, train_step 2): 4 of 4 elements are NaN, first at 0; its inputs were "
      "finite");
}

TEST(EarliestFindingTest, ComesFirstAndNamesItsRanks) {
  using Kind = NanFinding::Kind;
  const NanFinding none = {}, late = {Kind::kOwn, 1, 3, "late"}, early = {Kind::kOwn, 0, 9, "early"};
  const NanFinding received = {Kind::kReceived, 0, 1, "sum"}, lost = {Kind::kLost};
  EXPECT_EQ(EarliestFinding({late, none, early}), "rank 2, early");
  EXPECT_EQ(EarliestFinding({early, received, early, late, early}), "ranks 0,2,4, early");
  EXPECT_EQ(EarliestFinding({received, received}), "ranks 0,1, sum");
  EXPECT_EQ(EarliestFinding({late}), "late");
  EXPECT_EQ(EarliestFinding({none, lost, received}), "rank 2, sum");
  EXPECT_EQ(EarliestFinding({none, lost, lost}),
            "replayed it is not finite either, and nothing shows where that began");
  EXPECT_EQ(EarliestFinding({none, none}),
            "replayed it is finite: a kernel that does not repeat itself, or a fault of the hardware");
}

TEST(GatherFindingsTest, EveryRankKnowsWhatAllHaveFoundAndWhatIsLongIsCut) {
  ft::testing::TestWorld world(2);
  const proto::Plan plan;
  const std::string letters = "\u00e4\u00e4\u00e4";
  std::string longer(994, 'x');
  while (longer.size() < 2000) longer += letters;
  world.RunThreads([&](const Rendezvous& rendezvous) {
    auto communicators = CreatePlanCommunicators(rendezvous, plan, {1, 2}, {});
    ASSERT_TRUE(communicators.ok()) << communicators.status();
    const bool second = rendezvous.rank() == 1;
    const auto all = GatherFindings({.kind = second ? NanFinding::Kind::kOwn : NanFinding::Kind::kNothing,
                                     .micro_step = 3,
                                     .instruction = 5,
                                     .text = second ? longer : "short"},
                                    &communicators->world());
    ASSERT_TRUE(all.ok()) << all.status();
    ASSERT_EQ(all->size(), 2u);
    EXPECT_EQ((*all)[0].text, "short");
    EXPECT_EQ((*all)[1].text, absl::StrCat(std::string(994, 'x'), "\u00e4..."));
    EXPECT_EQ((*all)[1].kind, NanFinding::Kind::kOwn);
    EXPECT_EQ((*all)[1].micro_step, 3);
    EXPECT_EQ((*all)[1].instruction, 5);
  });
}

}  // namespace
}  // namespace ft
