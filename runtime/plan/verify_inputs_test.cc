#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/plan/inputs.h"
#include "runtime/plan/testing/plan_parts.h"
#include "runtime/plan/testing/tiny_plan.h"
#include "runtime/plan/verify_plan.h"

namespace ft {
namespace {

// The number of a buffer that is there all the time.
uint32_t AddPersistent(proto::Plan& plan, const std::string& name, uint64_t bytes) {
  proto::Buffer* buffer = plan.add_buffers();
  buffer->set_name(name);
  buffer->set_class_(proto::IO);
  buffer->mutable_size()->set_value(bytes);
  buffer->set_persistent(true);
  return static_cast<uint32_t>(plan.buffers_size()) - 1;
}

// A plan that takes one more input, "pixels", of f32 [2, 3, 5], in a program eval_step that reports a sum.
proto::Plan PlanWithPixels() {
  proto::Plan plan = TinyPlan();
  proto::Input* pixels = plan.add_inputs();
  pixels->set_name("pixels");
  for (const uint64_t extent : {2, 3, 5}) pixels->add_shape(extent);
  const uint32_t place = AddPersistent(plan, "pixels", 120), sum = AddPersistent(plan, "loss_sum", 8);
  proto::Program* train = plan.mutable_programs(1);
  plan_parts::AddPort(train->mutable_inputs(), "pixels", plan_parts::At(place, proto::F32, {2, 3, 5}));
  proto::Program* evaluation = plan.add_programs();
  evaluation->set_name("eval_step");
  for (const proto::Port& port : train->inputs()) {
    if (port.name() != "lr" && port.name() != "step") *evaluation->add_inputs() = port;
  }
  plan_parts::Kernel(evaluation, "loss_count", {plan_parts::At(place, proto::F32, {2, 3, 5})},
                     {plan_parts::At(sum, proto::F32, {2})});
  plan_parts::AddPort(evaluation->mutable_outputs(), "loss_sum", plan_parts::At(sum, proto::F32, {2}));
  return plan;
}

// The same with a program sample_step, number 3.
proto::Plan PlanWithSample() {
  proto::Plan plan = PlanWithPixels();
  const uint32_t position = AddPersistent(plan, "sample_position", 4),
                 logits = AddPersistent(plan, "sample_logits", 24);
  proto::Program* sample = plan.add_programs();
  sample->set_name("sample_step");
  *sample->add_inputs() = plan.programs(1).inputs(0);
  plan_parts::AddPort(sample->mutable_inputs(), "sample_position", plan_parts::At(position, proto::I32, {}));
  plan_parts::Kernel(sample, "loss_count", {plan_parts::At(position, proto::I32, {})},
                     {plan_parts::At(logits, proto::F32, {2, 3})});
  plan_parts::AddPort(sample->mutable_outputs(), "sample_logits", plan_parts::At(logits, proto::F32, {2, 3}));
  return plan;
}

proto::Port* InputPort(proto::Plan& plan, int index) {
  return plan.mutable_programs(1)->mutable_inputs(index);
}

struct InputDamage {
  const char* name;
  const char* message;
  std::function<void(proto::Plan&)> apply;
};

class DamagedInputsTest : public testing::TestWithParam<InputDamage> {};

TEST(VerifyInputsTest, AcceptsAndDescribes) {
  const proto::Plan plan = PlanWithPixels();
  EXPECT_TRUE(VerifyPlan(plan).ok()) << VerifyPlan(plan);
  EXPECT_TRUE(TakesTokens(plan));
  EXPECT_TRUE(CanFillUpRows(plan));
  proto::Plan pictures = plan;
  for (int i : {0, 1}) pictures.mutable_inputs(i)->set_filling(proto::Input::TENSOR);
  EXPECT_FALSE(CanFillUpRows(pictures));
  EXPECT_EQ(BatchText(plan), "2 x 16 tokens");
  EXPECT_EQ(BatchText(pictures), "2 examples");
  EXPECT_EQ(ExampleText(plan.inputs(2)), "f32 [3, 5]");
  EXPECT_EQ(ExampleBytes(plan.inputs(2)), 60);
  EXPECT_EQ(BatchBytes(plan), 2 * (2 * 16 * 4) + 2 * 60);
  EXPECT_EQ(FillingOf("positions"), proto::Input::POSITIONS);
  EXPECT_EQ(FillingOf("input_ids"), proto::Input::TOKENS);
  EXPECT_EQ(FillingOf("pixels"), std::nullopt);
  EXPECT_TRUE(CanBeFilled(proto::Input::LABELS, DType::kI64, 2));
  EXPECT_FALSE(CanBeFilled(proto::Input::LABELS, DType::kI64, 1));
  EXPECT_TRUE(CanBeFilled(proto::Input::ATTENTION_MASK, DType::kU8, 2));
  EXPECT_FALSE(CanBeFilled(proto::Input::SEGMENTS, DType::kU8, 2));
  EXPECT_TRUE(CanBeFilled(proto::Input::LENGTHS, DType::kI32, 1));
  EXPECT_FALSE(IsSignatureName("2x"));
  EXPECT_FALSE(IsSignatureName("a.b"));
  EXPECT_TRUE(IsReservedName("loss_sum"));
}

TEST(VerifyInputsTest, RowsCanBeFilledUpWhereOutputsCountTargets) {
  proto::Plan plan = PlanWithPixels();
  proto::Program* evaluation = plan.mutable_programs(2);
  *evaluation->add_outputs() = evaluation->outputs(0);
  evaluation->mutable_outputs(1)->set_name("accuracy");
  EXPECT_FALSE(CanFillUpRows(plan));
  evaluation->mutable_outputs(1)->set_counted(true);
  EXPECT_TRUE(CanFillUpRows(plan));
}

TEST(VerifyInputsTest, TellsPlansThatOnlyEvaluateAndLossesOfTokens) {
  proto::Plan plan = PlanWithPixels();
  EXPECT_FALSE(EvaluatesOnly(plan));
  plan.mutable_programs(1)->set_name("other");
  EXPECT_TRUE(EvaluatesOnly(plan));
  EXPECT_FALSE(LossIsOfTokens(plan));
  plan.mutable_programs(2)->mutable_outputs(0)->set_counted(true);
  EXPECT_TRUE(LossIsOfTokens(plan));
  plan.mutable_programs(2)->mutable_outputs(0)->set_counted(false);
  // A loss that one kernel makes and that is summed as it is.
  proto::Instruction sum = plan.programs(2).instructions(0);
  proto::Instruction* loss = plan.mutable_programs(2)->mutable_instructions(0);
  loss->set_kernel("linear_cross_entropy");
  *loss->mutable_out(0) = sum.in(0);
  *plan.mutable_programs(2)->add_instructions() = sum;
  EXPECT_TRUE(LossIsOfTokens(plan));
  loss->set_kernel("add");
  EXPECT_FALSE(LossIsOfTokens(plan));
}

TEST(VerifyInputsTest, ChecksWhatContinuesAText) {
  EXPECT_TRUE(VerifyPlan(PlanWithSample()).ok()) << VerifyPlan(PlanWithSample());
  const std::vector<InputDamage> damages = {
      {"NoTokens", "does not make logits of tokens and a position",
       [](auto& p) { p.mutable_programs(3)->mutable_inputs()->DeleteSubrange(0, 1); }},
      {"NoPosition", "does not make logits of tokens and a position",
       [](auto& p) { p.mutable_programs(3)->mutable_inputs(1)->set_name("step"); }},
      {"Position", "it is no i32",
       [](auto& p) { p.mutable_programs(3)->mutable_inputs(1)->mutable_operand()->set_dtype(proto::F32); }},
      {"Name", "nothing reads it", [](auto& p) { p.mutable_programs(3)->mutable_outputs(0)->set_name("x"); }},
      {"Batch", "does not hold logits",
       [](auto& p) { p.mutable_programs(3)->mutable_outputs(0)->mutable_operand()->set_shape(0, 1); }},
      {"Integers", "does not hold logits",
       [](auto& p) { p.mutable_programs(3)->mutable_outputs(0)->mutable_operand()->set_dtype(proto::I32); }},
  };
  for (const InputDamage& damage : damages) {
    proto::Plan plan = PlanWithSample();
    damage.apply(plan);
    EXPECT_NE(std::string(VerifyPlan(plan).message()).find(damage.message), std::string::npos)
        << damage.name << ": " << VerifyPlan(plan);
  }
}

TEST_P(DamagedInputsTest, IsRefusedByName) {
  proto::Plan plan = PlanWithPixels();
  GetParam().apply(plan);
  const absl::Status status = VerifyPlan(plan);
  ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_NE(std::string(status.message()).find(GetParam().message), std::string::npos) << status.message();
  EXPECT_EQ(std::string(status.message()).find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Inputs, DamagedInputsTest,
    testing::ValuesIn(std::vector<InputDamage>{
        {"Name", "cannot be called so", [](auto& p) { p.mutable_inputs(2)->set_name("a\nb"); }},
        {"Reserved", "cannot be called so", [](auto& p) { p.mutable_inputs(2)->set_name("lr"); }},
        {"Twice", "two of this name", [](auto& p) { p.mutable_inputs(2)->set_name("tokens"); }},
        {"Type", "unknown type", [](auto& p) { p.mutable_inputs(2)->set_dtype(proto::F64); }},
        {"Filling", "unknown type",
         [](auto& p) { p.mutable_inputs(2)->set_filling(static_cast<proto::Input::Filling>(99)); }},
        {"FloatTokens", "no sequences of tokens fill",
         [](auto& p) { p.mutable_inputs(2)->set_filling(proto::Input::POSITIONS); }},
        {"RankOfLengths", "no sequences of tokens fill",
         [](auto& p) { p.mutable_inputs(1)->set_filling(proto::Input::LENGTHS); }},
        {"Tokenizer", "is no 16 hexadecimal digits", [](auto& p) { p.set_tokenizer_hash("0123"); }},
        {"SameFilling", "another one is filled by the same",
         [](auto& p) { p.mutable_inputs(1)->set_filling(proto::Input::TOKENS); }},
        {"Batch", "not the batch of 2", [](auto& p) { p.mutable_inputs(2)->set_shape(0, 3); }},
        {"NoExtent", "an impossible dimension", [](auto& p) { p.mutable_inputs(2)->set_shape(1, 0); }},
        {"HugeExtent", "an impossible dimension",
         [](auto& p) { p.mutable_inputs(2)->set_shape(1, uint64_t{1} << 60); }},
        {"Sequence", "does not hold sequences of 16", [](auto& p) { p.mutable_inputs(0)->set_shape(1, 8); }},
        {"FloatIds", "cannot choose among 7", [](auto& p) { p.mutable_inputs(2)->set_ids_below(7); }},
        {"LeftOut", "no loss can leave out", [](auto& p) { p.mutable_inputs(2)->set_may_be_left_out(true); }},
        {"Vocabulary", "not the vocabulary", [](auto& p) { p.mutable_inputs(0)->set_ids_below(7); }},
        {"CountedTwice", "counts another one",
         [](auto& p) {
           p.mutable_inputs(0)->set_may_be_left_out(true);
           p.mutable_inputs(0)->set_counted(true);
         }},
        {"ValueOfData", "it has a value, but is filled by data",
         [](auto& p) { p.mutable_inputs(2)->set_value("x"); }},
        {"NoValue", "its value has 0 bytes, not 120",
         [](auto& p) { p.mutable_inputs(2)->set_filling(proto::Input::VALUE); }},
        {"ValueBeyond", "its value has 7, outside of 0 ... 6",
         [](auto& p) {
           p.mutable_inputs(2)->set_filling(proto::Input::VALUE);
           p.mutable_inputs(2)->set_dtype(proto::I32);
           p.mutable_inputs(2)->set_ids_below(7);
           p.mutable_inputs(2)->set_value(std::string(119, '\0').insert(4, 1, '\7'));
         }},
        {"Unknown", "nothing fills it", [](auto& p) { p.mutable_inputs()->RemoveLast(); }},
        {"PortShape", "not of the type and shape",
         [](auto& p) { InputPort(p, 5)->mutable_operand()->set_shape(2, 4); }},
        {"PortType", "not of the type and shape",
         [](auto& p) { InputPort(p, 5)->mutable_operand()->set_dtype(proto::I32); }},
        {"PortTwice", "two of this name", [](auto& p) { InputPort(p, 5)->set_name("targets"); }},
        {"SameBuffer", "another input lies in its buffer",
         [](auto& p) { *InputPort(p, 0)->mutable_operand() = InputPort(p, 1)->operand(); }},
        {"NotTaken", "eval_step does not take it",
         [](auto& p) { p.mutable_programs(2)->mutable_inputs()->RemoveLast(); }},
        {"OutputName", "an output cannot be called so",
         [](auto& p) { p.mutable_programs(2)->mutable_outputs(0)->set_name("x y"); }},
        {"OutputShape", "no sum and count",
         [](auto& p) { p.mutable_programs(2)->mutable_outputs(0)->mutable_operand()->set_shape(0, 1); }},
    }),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ft
