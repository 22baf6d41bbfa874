#include "runtime/plan/verify_plan.h"

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/testing/tiny_plan.h"

namespace ft {
namespace {

proto::Instruction* Train(proto::Plan& plan, const std::string& title) {
  return plan.mutable_programs(1)->mutable_instructions(InstructionIndex(plan, title));
}

proto::Buffer* Buffer(proto::Plan& plan, const std::string& name) {
  return plan.mutable_buffers(BufferIndex(plan, name));
}

TEST(VerifyPlanTest, AcceptsGoodPlans) {
  EXPECT_TRUE(VerifyPlan(TinyPlan({.shard = true})).ok()) << VerifyPlan(TinyPlan({.shard = true}));
  EXPECT_TRUE(VerifyPlan(TinyPlan({.shard = false})).ok()) << VerifyPlan(TinyPlan({.shard = false}));
}

struct Damage {
  const char* name;
  const char* message;  // what the error must say
  std::function<void(proto::Plan&)> apply;
};

class DamagedPlanTest : public testing::TestWithParam<Damage> {};

TEST_P(DamagedPlanTest, IsRefusedByName) {
  proto::Plan plan = TinyPlan();
  GetParam().apply(plan);
  const absl::Status status = VerifyPlan(plan);
  ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_NE(std::string(status.message()).find(GetParam().message), std::string::npos) << status.message();
  EXPECT_EQ(std::string(status.message()).find('\n'), std::string::npos);
}

std::vector<Damage> TableDamages() {
  return {
      {"NoBlock", "a block of 0 elements", [](auto& p) { p.set_block_elements(0); }},
      {"NoBatch", "a batch of 0 sequences", [](auto& p) { p.set_batch(0); }},
      {"OddUnit", "unit 'bigram' has 6145 elements", [](auto& p) { p.mutable_units(0)->set_elements(6145); }},
      {"HugeUnit", "unit 'bigram' has", [](auto& p) { p.mutable_units(0)->set_elements(uint64_t{1} << 60); }},
      {"ParameterOutside", "parameter 'head' leaves its unit",
       [](auto& p) { p.mutable_parameters(1)->set_offset(4096); }},
      {"ParameterOffBlock", "parameter 'table' begins at element 3, inside a block",
       [](auto& p) { p.mutable_parameters(0)->set_offset(3); }},
      {"ParametersOverlap", "parameters 'table' and 'head' overlap",
       [](auto& p) { p.mutable_parameters(1)->set_offset(2048); }},
      {"ParameterUnit", "parameter 'head' is in unit 7 of 1",
       [](auto& p) { p.mutable_parameters(1)->set_unit(7); }},
      {"ParameterOverflow", "parameter 'head' has a dimension of",
       [](auto& p) { p.mutable_parameters(1)->set_shape(0, ~uint64_t{0}); }},
      {"BufferProgram", "buffer 'x' belongs to program 9", [](auto& p) { Buffer(p, "x")->set_program(9); }},
      {"BufferLife", "buffer 'x' lives from instruction 5 to 2",
       [](auto& p) { Buffer(p, "x")->set_first(5), Buffer(p, "x")->set_last(2); }},
      {"BufferSize", "buffer 'x' has an impossible size",
       [](auto& p) { Buffer(p, "x")->mutable_size()->set_value(~uint64_t{0}); }},
      {"BufferUnit", "buffer 'gathered' is sized by unit 4",
       [](auto& p) { Buffer(p, "gathered")->mutable_size()->set_unit(4); }},
      {"FlatBuffer", "buffer 'lr' is not a persistent flat buffer",
       [](auto& p) { p.mutable_unit_states(0)->set_buffer(BufferIndex(p, "lr")); }},
  };
}

std::vector<Damage> InstructionDamages() {
  return {
      {"OperandBuffer", "(embedding, layer bigram): an operand is in buffer 99",
       [](auto& p) { Train(p, "embedding")->mutable_in(0)->set_buffer_plus_one(100); }},
      {"OperandLeaves", "leaves buffer 'gathered'",
       [](auto& p) { Train(p, "embedding")->mutable_in(1)->set_shape(0, 600); }},
      {"OperandOverflow", "leaves buffer 'x'",
       [](auto& p) { Train(p, "embedding")->mutable_out(0)->set_shape(0, uint64_t{1} << 63); }},
      {"OperandOffset", "leaves buffer 'x'",
       [](auto& p) { Train(p, "embedding")->mutable_out(0)->set_offset(~uint64_t{0} - 3); }},
      {"OperandAlignment", "not aligned",
       [](auto& p) { Train(p, "embedding")->mutable_in(1)->set_offset(2); }},
      {"SliceAsWhole", "which may have only 4096 bytes",
       [](auto& p) {
         Train(p, "embedding")->mutable_in(1)->set_buffer_plus_one(BufferIndex(p, "parameters") + 1);
       }},
      {"Dead", "buffer 'x' does not live here",
       [](auto& p) { Buffer(p, "x")->set_last(Buffer(p, "x")->first()); }},
      {"AfterLater", "it waits for instruction 11, which does not come before it",
       [](auto& p) { Train(p, "wait")->set_after(0, 11); }},
      {"AfterOwn", "of its own stream", [](auto& p) { Train(p, "embedding")->add_after(1); }},
      {"GatherKind", "must join the whole slice and the whole flat buffer",
       [](auto& p) {
         Train(p, "all_gather")->mutable_in(0)->set_buffer_plus_one(BufferIndex(p, "gathered") + 1);
       }},
      {"GatherStream", "cannot run on the compute stream",
       [](auto& p) { Train(p, "all_gather")->set_stream(proto::COMPUTE); }},
      {"Port", "train_step, port 'loss'",
       [](auto& p) {
         p.mutable_programs(1)->mutable_outputs(0)->mutable_operand()->set_buffer_plus_one(77);
       }},
      {"TransientPort", "does not persist",
       [](auto& p) {
         p.mutable_programs(1)->mutable_outputs(0)->mutable_operand()->set_buffer_plus_one(
             BufferIndex(p, "x") + 1);
       }},
      {"ResultOnOperand",
       "(embedding, layer bigram): an operand and a result that is not in its place share bytes of buffer "
       "'gathered'",
       [](auto& p) {
         Train(p, "embedding")->mutable_out(0)->set_buffer_plus_one(BufferIndex(p, "gathered") + 1);
       }},
      {"WorkspaceOnOperand", "the workspace and an operand share bytes of buffer 'x'",
       [](auto& p) {
         *Train(p, "linear_cross_entropy_loss_grad")->mutable_workspace() = Train(p, "embedding")->out(0);
       }},
      {"WorkspaceOnResult", "the workspace and a result share bytes of buffer 'x'",
       [](auto& p) { *Train(p, "embedding")->mutable_workspace() = Train(p, "embedding")->out(0); }},
      {"ResultOnResult", "two results share bytes of buffer 'dx'",
       [](auto& p) {
         *Train(p, "linear_cross_entropy_loss_grad")->mutable_out(0) =
             Train(p, "linear_cross_entropy_loss_grad")->out(1);
       }},
      {"NoKernel", "a kernel without a name", [](auto& p) { Train(p, "embedding")->clear_kernel(); }},
  };
}

// Takes the collective `title` out of all `after` lists, and waits for nothing instead.
void ForgetWait(proto::Plan& plan, const std::string& title) {
  const uint32_t index = InstructionIndex(plan, title);
  for (proto::Instruction& instruction : *plan.mutable_programs(1)->mutable_instructions()) {
    std::vector<uint32_t> kept;
    for (uint32_t earlier : instruction.after()) {
      if (earlier != index) kept.push_back(earlier);
    }
    instruction.mutable_after()->Assign(kept.begin(), kept.end());
    if (instruction.opcode() == proto::WAIT && kept.empty()) instruction.set_opcode(proto::RELEASE);
  }
}

std::vector<Damage> OrderDamages() {
  return {
      {"NeverWaited", "(all_gather bigram): nothing waits for it",
       [](auto& p) { ForgetWait(p, "all_gather"); }},
      {"ReadUnwritten", "(embedding_grad, layer bigram): it reads buffer 'dx' where nothing has written it",
       [](auto& p) { Train(p, "linear_cross_entropy_loss_grad")->mutable_out(1)->set_buffer_plus_one(0); }},
      {"ReadHalfWritten",
       "(reduce_scatter bigram): it reads buffer 'flat_gradient' where nothing has written it",
       [](auto& p) { Train(p, "zero_padding")->mutable_out(0)->set_buffer_plus_one(0); }},
      {"ScatterTooEarly", "buffer 'flat_gradient' may still be written by instruction 6 (zero_padding)",
       [](auto& p) {
         Train(p, "reduce_scatter")->set_after(0, 5);
         p.mutable_programs(1)->mutable_instructions(8)->set_after(0, 5);
       }},
      {"SumTooEarly", "buffer 'gradient' may still be written by instruction 7 (reduce_scatter bigram)",
       [](auto& p) {
         // The wait moves behind the sum of squares.
         p.mutable_programs(1)->mutable_instructions()->SwapElements(9, 10);
         p.mutable_programs(1)->mutable_instructions(11)->set_after(0, 9);
         Buffer(p, "accumulator")->set_first(9);
       }},
      {"ReuseTooEarly",
       "buffer 'gathered_again' may lie where 'scalars' did, which may still be used by instruction 15 "
       "(update)",
       [](auto& p) {
         // A second gather, of parameters that nothing writes, into a buffer that begins its life when all
         // others have ended, with nothing that says so to its stream.
         proto::Plan& plan = p;
         proto::Program* train = plan.mutable_programs(1);
         const uint32_t again = plan.buffers_size(), at = train->instructions_size();
         *plan.add_buffers() = plan.buffers(BufferIndex(plan, "gathered"));
         *plan.add_buffers() = plan.buffers(BufferIndex(plan, "parameters"));
         plan.mutable_buffers(again)->set_name("gathered_again");
         plan.mutable_buffers(again)->set_first(at);
         plan.mutable_buffers(again)->set_last(at);
         Buffer(plan, "coefficient")->set_last(at);
         Buffer(plan, "gradient")->set_last(at);
         Buffer(plan, "accumulator")->set_last(at - 1);
         *train->add_instructions() = train->instructions(0);
         train->mutable_instructions(at)->mutable_in(0)->set_buffer_plus_one(again + 2);
         train->mutable_instructions(at)->mutable_out(0)->set_buffer_plus_one(again + 1);
         proto::Instruction* wait = train->add_instructions();
         wait->set_opcode(proto::WAIT);
         wait->add_after(at);
       }},
  };
}

std::string NameOf(const testing::TestParamInfo<Damage>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Tables, DamagedPlanTest, testing::ValuesIn(TableDamages()), NameOf);
INSTANTIATE_TEST_SUITE_P(Instructions, DamagedPlanTest, testing::ValuesIn(InstructionDamages()), NameOf);
INSTANTIATE_TEST_SUITE_P(Order, DamagedPlanTest, testing::ValuesIn(OrderDamages()), NameOf);

// Bytes of a plan changed at random: whatever still parses is verified and, if accepted, bound. Nothing may
// crash, and what is accepted must have every operand inside the arena.
TEST(VerifyPlanTest, SurvivesRandomDamage) {
  std::mt19937_64 random(20240607);
  int parsed = 0, accepted = 0;
  const google::protobuf::LogSilencer silencer;
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = TinyPlan({.shard = round % 2 == 0}).SerializeAsString();
    const int changes = 1 + random() % 2;
    for (int c = 0; c < changes; ++c) bytes[random() % bytes.size()] = static_cast<char>(random());
    proto::Plan plan;
    if (!plan.ParseFromString(bytes)) continue;
    ++parsed;
    if (!VerifyPlan(plan).ok()) continue;
    ++accepted;
    for (int ranks : {1, 3}) {
      const auto bound = BindPlan(plan, *MeshFor(plan, ranks), DeviceClass::kCpu);
      if (!bound.ok()) continue;
      for (int b = 0; b < plan.buffers_size(); ++b) {
        const BoundArena& arena = plan.buffers(b).space() == proto::DEVICE ? bound->device : bound->host;
        ASSERT_LE(bound->offsets[b] + bound->sizes[b], arena.arena_bytes);
      }
    }
  }
  EXPECT_GT(parsed, 500);  // otherwise this tests nothing but protobuf
  EXPECT_GT(accepted, 50);
}

// The same with numbers instead of bytes, so that all rounds reach the checks.
TEST(VerifyPlanTest, SurvivesRandomNumbers) {
  std::mt19937_64 random(7);
  const std::vector<uint64_t> values = {
      0, 1, 2, 3, 7, 1023, 1024, 4096, uint64_t{1} << 31, uint64_t{1} << 40, ~uint64_t{0}};
  const auto any = [&] { return values[random() % values.size()]; };
  for (int round = 0; round < 4000; ++round) {
    proto::Plan plan = TinyPlan();
    proto::Instruction* instruction =
        plan.mutable_programs(1)->mutable_instructions(random() % plan.programs(1).instructions_size());
    proto::Buffer* buffer = plan.mutable_buffers(random() % plan.buffers_size());
    switch (random() % 8) {
      case 0:
        buffer->mutable_size()->set_value(any());
        break;
      case 1:
        buffer->set_first(any());
        break;
      case 2:
        buffer->set_last(any());
        break;
      case 3:
        buffer->mutable_size()->set_kind(static_cast<proto::SizeExpr::Kind>(any() % 5));
        break;
      case 4:
        if (instruction->in_size() > 0) instruction->mutable_in(0)->set_offset(any());
        break;
      case 5:
        if (instruction->out_size() > 0) instruction->mutable_out(0)->set_buffer_plus_one(any() % 30);
        break;
      case 6:
        instruction->set_stream(static_cast<proto::Stream>(any() % 5));
        break;
      default:
        instruction->add_after(any() % 20);
    }
    if (VerifyPlan(plan).ok()) BindPlan(plan, {1, 2}, DeviceClass::kCpu).status().IgnoreError();
  }
}

}  // namespace
}  // namespace ft
