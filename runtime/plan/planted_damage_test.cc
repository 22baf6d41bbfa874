// Every kind of damage, planted in valid plans: each is refused with a message that names the instruction.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/plan/testing/tiny_plan.h"
#include "runtime/plan/verify_parts.h"
#include "runtime/plan/verify_plan.h"

namespace ft {
namespace {

const TinyPlanOptions kSharded = {.shard = true};
const TinyPlanOptions kReplicated = {.shard = false};
const TinyPlanOptions kWhole = {.shard = true, .whole_parameters = true};
const TinyPlanOptions kHybrid = {.shard = true, .two_axes = true};
const TinyPlanOptions kOffloaded = {.shard = true, .offload = true};
const TinyPlanOptions kHostStep = {.shard = true, .offload = true, .host_step = true};
const TinyPlanOptions kHybridWhole = {.shard = true, .whole_parameters = true, .two_axes = true};

proto::Program* Train(proto::Plan& plan) { return plan.mutable_programs(1); }

proto::Instruction* Find(proto::Plan& plan, const std::string& title) {
  return Train(plan)->mutable_instructions(InstructionIndex(plan, title));
}

proto::Buffer* Buffer(proto::Plan& plan, const std::string& name) {
  return plan.mutable_buffers(BufferIndex(plan, name));
}

proto::Operand WholeOf(const proto::Plan& plan, const std::string& name) {
  proto::Operand operand;
  operand.set_buffer_plus_one(BufferIndex(plan, name) + 1);
  operand.set_whole(true);
  return operand;
}

proto::Operand InverseRanks(const proto::Plan& plan) {
  proto::Operand operand;
  operand.set_buffer_plus_one(BufferIndex(plan, "inverse_ranks") + 1);
  operand.set_dtype(proto::F32);
  return operand;
}

// Takes instruction `index` out of train_step; numbers behind it move up, waits for it are forgotten.
void Drop(proto::Plan& plan, int index) {
  Train(plan)->mutable_instructions()->DeleteSubrange(index, 1);
  for (proto::Instruction& instruction : *Train(plan)->mutable_instructions()) {
    std::vector<uint32_t> after;
    for (uint32_t earlier : instruction.after()) {
      if (earlier != static_cast<uint32_t>(index))
        after.push_back(earlier > static_cast<uint32_t>(index) ? earlier - 1 : earlier);
    }
    instruction.mutable_after()->Assign(after.begin(), after.end());
  }
  for (proto::Buffer& buffer : *plan.mutable_buffers()) {
    if (buffer.persistent() || buffer.program() != 1) continue;
    if (buffer.first() > static_cast<uint32_t>(index)) buffer.set_first(buffer.first() - 1);
    if (buffer.last() >= static_cast<uint32_t>(index)) buffer.set_last(buffer.last() - 1);
  }
}

// The two change places in the list; what names them by number does not follow.
void Swap(proto::Plan& plan, const std::string& a, const std::string& b) {
  Train(plan)->mutable_instructions()->SwapElements(InstructionIndex(plan, a), InstructionIndex(plan, b));
}

struct Damage {
  const char* name;
  TinyPlanOptions plan;
  const char* message;  // what the error says
  std::function<void(proto::Plan&)> apply;
};

void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

class PlantedDamageTest : public testing::TestWithParam<Damage> {};

TEST_P(PlantedDamageTest, IsRefusedByName) {
  proto::Plan plan = TinyPlan(GetParam().plan);
  ASSERT_EQ(VerifyPlan(plan), absl::OkStatus()) << "before the damage";
  GetParam().apply(plan);
  const absl::Status status = VerifyPlan(plan);
  ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_NE(std::string(status.message()).find(GetParam().message), std::string::npos) << status.message();
  EXPECT_EQ(std::string(status.message()).find('\n'), std::string::npos);
}

std::vector<Damage> TableDamages() {
  const auto state = [](proto::Plan& p, int i) { return p.mutable_unit_states(i); };
  return {
      {"StateUnit", kSharded, "state 'parameters' belongs to unit 5 of 1",
       [=](auto& p) { state(p, 0)->set_unit(5); }},
      {"StateBuffer", kSharded, "unit 'bigram' names buffer 99",
       [=](auto& p) { state(p, 0)->set_buffer(99); }},
      {"StateRole", kSharded, "state whose role is no name: 'mo/ments'",
       [=](auto& p) { state(p, 1)->set_role("mo/ments"); }},
      {"StateTwice", kSharded, "unit 'bigram' has state 'exp_avg' twice",
       [=](auto& p) { state(p, 2)->set_role("exp_avg"); }},
      {"StateShared", kSharded, "buffer 'exp_avg' holds two states, one of them 'exp_avg_sq'",
       [=](auto& p) { state(p, 2)->set_buffer(BufferIndex(p, "exp_avg")); }},
      {"StateClass", kSharded,
       "buffer 'parameters' holds 'master' of unit 'bigram', but is of class PARAMETERS",
       [=](auto& p) { state(p, 0)->set_role("master"); }},
      {"StateLayout", kSharded,
       "buffer 'exp_avg' is not a persistent buffer of the 512 elements of 'exp_avg' of unit 'bigram'",
       [=](auto& p) { state(p, 1)->set_layout(proto::Plan::UnitState::ROWS); }},
      {"StateLayoutUnknown", kSharded, "state 'exp_avg' of unit 'bigram' is laid out in an unknown way",
       [=](auto& p) { state(p, 1)->set_layout(static_cast<proto::Plan::UnitState::Layout>(9)); }},
      {"StateLayoutOfWeights", kSharded,
       "state 'parameters' of unit 'bigram' does not have an element for each of the unit's",
       [=](auto& p) { state(p, 0)->set_layout(proto::Plan::UnitState::COLUMNS); }},
      {"StateType", kSharded, "buffer 'exp_avg' holds 'exp_avg' of unit 'bigram' in 2 bytes per element",
       [=](auto& p) { Buffer(p, "exp_avg")->mutable_size()->set_value(2); }},
      {"StateTransient", kSharded, "buffer 'gathered' is not a persistent flat buffer of unit 'bigram'",
       [=](auto& p) { state(p, 0)->set_buffer(BufferIndex(p, "gathered")); }},
      {"CudaBytesOfActivations", kSharded,
       "buffer 'x' has a size for CUDA, but is no scratch of a constant size on the device",
       [](auto& p) { Buffer(p, "x")->set_cuda_bytes(256); }},
      {"CudaBytesOfNothing", kSharded, "buffer 'gradient' has a size for CUDA, but is no scratch",
       [](auto& p) { Buffer(p, "gradient")->set_cuda_bytes(0); }},
      {"CudaBytesOfSlice", kOffloaded, "buffer 'zero_exp_avg' has a size for CUDA, but is no scratch",
       [](auto& p) { Buffer(p, "zero_exp_avg")->set_cuda_bytes(256); }},
      {"CudaBytesOfHost", kSharded, "buffer 'scratch' has a size for CUDA, but is no scratch",
       [](auto& p) { Buffer(p, "scratch")->set_space(proto::HOST); }},
      {"CudaBytesOfPersistent", kSharded, "buffer 'scratch' has a size for CUDA, but is no scratch",
       [](auto& p) { Buffer(p, "scratch")->set_persistent(true); }},
      {"CudaBytesTooMany", kSharded, "buffer 'scratch' has an impossible size",
       [](auto& p) { Buffer(p, "scratch")->set_cuda_bytes(uint64_t{1} << 60); }},
      {"ProgramTwice", kSharded, "two programs 'init'", [](auto& p) { Train(p)->set_name("init"); }},
      {"MicroSteps", kSharded, "a training step has 4 micro-steps, but the plan has no program train_micro",
       [](auto& p) { p.set_micro_steps(4); }},
      {"MicroProgram", kSharded, "a training step has 1 micro-steps, but the plan has a program train_micro",
       [](auto& p) { p.set_micro_steps(1), p.add_programs()->set_name("train_micro"); }},
      {"TwoAxesOfNothing", kReplicated, "it uses both axes of the mesh, but shards nothing",
       [](auto& p) { p.set_two_axes(true); }},
  };
}

std::vector<Damage> OperandDamages() {
  return {
      {"OwnSliceOfSlice", kSharded,
       "(sum_squares, layer bigram): an operand that is the own slice of buffer 'gradient', but",
       [](auto& p) {
         Find(p, "sum_squares")->mutable_in(0)->set_whole(false),
             Find(p, "sum_squares")->mutable_in(0)->set_own_slice(true);
       }},
      {"OwnSliceWithOffset", kWhole, "the own slice of buffer 'flat_gradient' has an offset or a shape",
       [](auto& p) { Find(p, "sum_squares")->mutable_in(0)->set_offset(4096); }},
      {"OwnSliceAndWhole", kWhole, "the whole of buffer 'flat_gradient' cannot be its own slice",
       [](auto& p) { Find(p, "sum_squares")->mutable_in(0)->set_whole(true); }},
      {"ScratchAsInput", kSharded,
       "(embedding_grad, layer bigram): buffer 'positions', whose size depends on the device, is used as "
       "more",
       [](auto& p) { *Find(p, "embedding_grad")->mutable_in(1) = WholeOf(p, "positions"); }},
      {"ScratchAsOutput", kSharded, "buffer 'positions', whose size depends on the device, is used as more",
       [](auto& p) { *Find(p, "embedding_grad")->mutable_out(0) = WholeOf(p, "positions"); }},
      {"ScratchTooSmallOnCuda", kSharded, "leaves buffer 'scratch', which may have only 4 bytes",
       [](auto& p) {
         Buffer(p, "scratch")->set_cuda_bytes(4);
         proto::Operand* scratch = Find(p, "linear_cross_entropy_loss_grad")->mutable_workspace();
         scratch->set_whole(false), scratch->add_shape(2);
       }},
      {"ScratchOfHalfAnElement", kSharded, "buffer 'scratch' does not hold whole elements of F32",
       [](auto& p) { Buffer(p, "scratch")->set_cuda_bytes(6); }},
      {"HostInKernel", kOffloaded,
       "(update, layer bigram): a kernel cannot touch host memory (buffer 'exp_avg')",
       [](auto& p) { *Find(p, "update")->mutable_out(1) = WholeOf(p, "exp_avg"); }},
      {"DeviceInKernelOfTheHost", kHostStep,
       "(update, layer bigram): a kernel of the host cannot touch memory of the device (buffer 'gradient')",
       [](auto& p) { *Find(p, "update")->mutable_in(0) = WholeOf(p, "gradient"); }},
      {"DeviceWrittenByKernelOfTheHost", kHostStep,
       "a kernel of the host cannot touch memory of the device (buffer 'parameters')",
       [](auto& p) { *Find(p, "update")->mutable_out(0) = WholeOf(p, "parameters"); }},
      {"OtherKernelOfTheHost", kHostStep,
       "(accumulate, layer bigram): of all kernels update alone runs on the host",
       [](auto& p) { Find(p, "update")->set_kernel("accumulate"); }},
      {"KernelOfTheHostOnTheDevice", kHostStep,
       "(update, layer bigram): a kernel cannot touch host memory (buffer 'gradient_there')",
       [](auto& p) {
         proto::Instruction* update = Find(p, "update");
         update->set_stream(proto::COMPUTE), update->clear_after();
       }},
      {"ScratchOfTheHost", kHostStep, "(update, layer bigram): a kernel of the host has no workspace",
       [](auto& p) { *Find(p, "update")->mutable_workspace() = WholeOf(p, "gradient_there"); }},
      {"PaddingOfNoUnit", kSharded,
       "(zero_padding, layer bigram): it takes a flat buffer of a unit, but buffer 'loss' is none",
       [](auto& p) { *Find(p, "zero_padding")->mutable_out(0) = WholeOf(p, "loss"); }},
      {"PaddingOfASlice", kSharded,
       "(zero_padding, layer bigram): it takes a flat buffer of a unit, but buffer 'flat_gradient' is none",
       [](auto& p) {
         proto::Operand* flat = Find(p, "zero_padding")->mutable_out(0);
         flat->set_whole(false), flat->set_own_slice(true);
       }},
      {"UpdateOfNoUnit", kSharded,
       "(update, layer bigram): it takes a flat buffer of a unit, but buffer 'coefficient' is none",
       [](auto& p) { *Find(p, "update")->mutable_in(0) = WholeOf(p, "coefficient"); }},
      {"UpdateOfAPart", kSharded,
       "(update, layer bigram): it takes a flat buffer of a unit, but buffer 'exp_avg' is none",
       [](auto& p) {
         proto::Operand* moment = Find(p, "update")->mutable_out(1);
         moment->set_whole(false), moment->add_shape(1024);
       }},
      {"UpdateOfTwoUnits", kOffloaded,
       "(update, layer bigram): buffer 'exp_avg_here' is of unit 'other', others are of 'bigram'",
       [](auto& p) {
         *p.add_units() = p.units(0);
         p.mutable_units(1)->set_name("other");
         Buffer(p, "exp_avg_here")->mutable_size()->set_unit(1);
       }},
      {"CopyOnTheHostsStream", kHostStep, "a copy runs on h2d or d2h",
       [](auto& p) { Find(p, "copy_out")->set_stream(proto::HOST_COMPUTE); }},
      {"CollectiveOnTheHostsStream", kHostStep, "a collective cannot run on the host_compute stream",
       [](auto& p) { Find(p, "reduce_scatter")->set_stream(proto::HOST_COMPUTE); }},
      {"HostInCollective", kSharded,
       "(all_gather bigram): a collective cannot touch host memory (buffer 'parameters')",
       [](auto& p) {
         Buffer(p, "parameters")->set_space(proto::HOST);
         p.mutable_programs()->DeleteSubrange(0, 0);
         for (auto& program : *p.mutable_programs()) {
           for (auto& instruction : *program.mutable_instructions()) {
             for (auto& out : *instruction.mutable_out()) {
               if (out.buffer_plus_one() == BufferIndex(p, "parameters") + 1) out.set_buffer_plus_one(0);
             }
           }
         }
       }},
      {"HostPort", kOffloaded, "train_step, port 'loss': it lies in host memory",
       [](auto& p) { *Train(p)->mutable_outputs(0)->mutable_operand() = WholeOf(p, "exp_avg"); }},
      {"KernelElsewhere", kSharded, "(embedding, layer bigram): a kernel runs on the compute stream",
       [](auto& p) { Find(p, "embedding")->set_stream(proto::H2D); }},
      {"KernelWithAxis", kSharded, "(embedding, layer bigram): it has an axis, but joins no ranks",
       [](auto& p) { Find(p, "embedding")->set_axis(proto::AXIS_WORLD); }},
      {"WaitElsewhere", kSharded, "(wait): it stands on another stream than compute",
       [](auto& p) { Find(p, "wait")->set_stream(proto::D2H); }},
  };
}

std::vector<Damage> TransferDamages() {
  return {
      {"CopyOfUnequalExtents", kOffloaded,
       "it copies 'parameters_there' to 'exp_avg_here', which are of different size",
       [](auto& p) {
         *p.add_buffers() = p.buffers(BufferIndex(p, "exp_avg"));
         proto::Buffer* there = p.mutable_buffers(p.buffers_size() - 1);
         there->set_name("parameters_there");
         there->mutable_size()->set_kind(proto::SizeExpr::UNIT_FULL);
         *Find(p, "copy_in")->mutable_in(0) = WholeOf(p, "parameters_there");
       }},
      {"CopyOfUnequalTypes", kOffloaded,
       "(copy_in exp_avg_here +1): it copies 'exp_avg' to 'exp_avg_here', which are of different size or "
       "type",
       [](auto& p) { Find(p, "copy_in")->mutable_in(0)->set_dtype(proto::BF16); }},
      {"CopyWithinDevice", kOffloaded,
       "it must copy from host to device memory: 'gradient' and 'exp_avg_here'",
       [](auto& p) { *Find(p, "copy_in")->mutable_in(0) = WholeOf(p, "gradient"); }},
      {"CopyBackwards", kOffloaded,
       "(copy_in exp_avg +1): it must copy from host to device memory: 'exp_avg_here' and 'exp_avg' do not "
       "lie so",
       [](auto& p) { Find(p, "copy_in")->mutable_in()->Swap(Find(p, "copy_in")->mutable_out()); }},
      {"CopyStream", kOffloaded, "a copy runs on h2d or d2h",
       [](auto& p) { Find(p, "copy_out")->set_stream(proto::GATHER); }},
      {"CopyAxis", kOffloaded, "a copy has no axis",
       [](auto& p) { Find(p, "copy_in")->set_axis(proto::AXIS_WORLD); }},
      {"BucketWithoutPair", kOffloaded, "it has 2 inputs and 1 outputs, which make no pairs",
       [](auto& p) { Find(p, "copy_in")->mutable_out()->RemoveLast(); }},
      {"BucketMeets", kOffloaded, "its pairs 0 and 1 meet in buffer 'exp_avg_here'",
       [](auto& p) { *Find(p, "copy_in")->mutable_out(1) = Find(p, "copy_in")->out(0); }},
      {"BucketGap", kOffloaded, "one of its operands is absent",
       [](auto& p) { Find(p, "copy_in")->mutable_in(1)->Clear(); }},
      {"EmptyBucket", kReplicated, "it moves nothing", [](auto& p) { Find(p, "all_reduce")->clear_in(); }},
      {"AllReduceElsewhere", kReplicated, "it has 1 inputs and 1 outputs, but works in place",
       [](auto& p) { *Find(p, "all_reduce")->add_out() = WholeOf(p, "parameters"); }},
      {"GatherAxis", kHybrid, "(all_gather bigram): slices lie along the shard axis only, not along replica",
       [](auto& p) { Find(p, "all_gather")->set_axis(proto::AXIS_REPLICA); }},
      {"ScatterAxis", kSharded,
       "(reduce_scatter bigram): slices lie along the shard axis only, not along world",
       [](auto& p) { Find(p, "reduce_scatter")->set_axis(proto::AXIS_WORLD); }},
      {"AxisWithoutRanks", kSharded, "(all_reduce): strategy full_shard has no ranks on the replica axis",
       [](auto& p) { Find(p, "all_reduce")->set_axis(proto::AXIS_REPLICA); }},
      {"ReplicatedOverShard", kReplicated, "strategy no_shard has no ranks on the shard axis",
       [](auto& p) { Find(p, "all_reduce")->set_axis(proto::AXIS_SHARD); }},
      {"NoAxis", kSharded, "a collective needs an axis",
       [](auto& p) { Find(p, "all_gather")->set_axis(proto::AXIS_NONE); }},
      {"CollectiveOnCopyStream", kSharded, "a collective cannot run on the h2d stream",
       [](auto& p) { Find(p, "all_gather")->set_stream(proto::H2D); }},
      {"GatherOnTheReplicasStream", kHybrid, "only sums over the replica axis run on the replica stream",
       [](auto& p) { Find(p, "all_gather")->set_stream(proto::REPLICA); }},
      {"SumOverShardsOnTheReplicasStream", kHybrid,
       "only sums over the replica axis run on the replica stream",
       [](auto& p) { Find(p, "all_reduce bigram")->set_axis(proto::AXIS_SHARD); }},
      {"InPlaceOfAnother", kWhole,
       "it must join the whole slice and the whole flat buffer of a unit, not 'flat_gradient' and "
       "'parameters'",
       [](auto& p) {
         Find(p, "all_gather")->mutable_in(0)->set_buffer_plus_one(BufferIndex(p, "flat_gradient") + 1);
       }},
      {"SumOfBytes", kReplicated, "ranks cannot sum U8",
       [](auto& p) { Find(p, "all_reduce")->mutable_in(0)->set_dtype(proto::U8); }},
  };
}

std::vector<Damage> MeanDamages() {
  return {
      {"NoMean", kSharded,
       "invalid plan: train_step: it sums gradients over ranks, but has no input 'inverse_ranks'",
       [](auto& p) { Train(p)->mutable_inputs()->RemoveLast(); }},
      {"MeanOfNothing", kReplicated, "nothing makes a mean of gradients with it",
       [](auto& p) { Find(p, "linear_cross_entropy_loss_grad")->mutable_in(4)->set_buffer_plus_one(0); }},
      {"MeanOfTheNormAlone", kSharded,
       "some of what reads gradients makes means of them, some takes them for",
       [](auto& p) { *Find(p, "sum_squares")->add_in() = InverseRanks(p); }},
      {"MeanOfTheUpdateAlone", kHybrid,
       "some of what reads gradients makes means of them, some takes them for",
       [](auto& p) { *Find(p, "update_scalars")->add_in() = InverseRanks(p); }},
      {"MeanTwice", kReplicated, "backward begins with it, and the update makes means once more",
       [](auto& p) {
         *Find(p, "sum_squares")->add_in() = InverseRanks(p);
         *Find(p, "update_scalars")->add_in() = InverseRanks(p);
       }},
      {"MeanOfManyNumbers", kHybrid, "it is no f32",
       [](auto& p) {
         Train(p)->mutable_inputs(Train(p)->inputs_size() - 1)->mutable_operand()->set_dtype(proto::I32);
       }},
      {"SecondSumMissing", kHybrid, "which instruction 7 has summed over shard, but nothing yet over replica",
       [](auto& p) { Drop(p, InstructionIndex(p, "all_reduce bigram")); }},
      {"SecondSumElsewhere", kHybrid, "(all_reduce bigram): strategy hybrid_shard",
       [](auto& p) { p.set_two_axes(false); }},
      {"FirstSumMissing", kHybridWhole,
       "it sums buffer 'flat_gradient' over replica, but nothing has summed it over shard before",
       [](auto& p) {
         const int scatter = InstructionIndex(p, "reduce_scatter");
         Drop(p, scatter + 1);
         Drop(p, scatter);
       }},
  };
}

std::vector<Damage> OrderDamages() {
  return {
      {"DroppedWaitForGather", kSharded, "(all_gather bigram): nothing waits for it",
       [](auto& p) { Drop(p, 1); }},
      {"DroppedWaitForCopy", kOffloaded, "(copy_in exp_avg_here +1): nothing waits for it",
       [](auto& p) { Drop(p, InstructionIndex(p, "copy_in") + 1); }},
      {"DroppedWaitForRefresh", kWhole, "(all_gather bigram): nothing waits for it",
       [](auto& p) { Drop(p, InstructionIndex(p, "all_gather") + 1); }},
      {"DroppedAfterOfScatter", kSharded,
       "(reduce_scatter bigram): buffer 'flat_gradient' may still be written by instruction 6",
       [](auto& p) { Find(p, "reduce_scatter")->clear_after(); }},
      {"DroppedAfterOfCopyOut", kOffloaded,
       "(copy_out exp_avg_here +1): buffer 'exp_avg_here' may still be written by",
       [](auto& p) { Find(p, "copy_out")->clear_after(); }},
      {"DroppedAfterOfCopyIn", kOffloaded,
       "(copy_in exp_avg_here +1): buffer 'exp_avg_here' may lie where 'flat_gradient' did",
       [](auto& p) { Find(p, "copy_in")->clear_after(); }},
      {"DroppedAfterOfRefresh", kWhole, "(all_gather bigram): buffer 'parameters' may still be written by",
       [](auto& p) { Find(p, "all_gather")->clear_after(); }},
      {"DroppedWaitForKernelOfTheHost", kHostStep, "(update, layer bigram): nothing waits for it",
       [](auto& p) { Drop(p, InstructionIndex(p, "update") + 1); }},
      {"DroppedAfterOfKernelOfTheHost", kHostStep,
       "(update, layer bigram): buffer 'gradient_there' may still be written by",
       [](auto& p) { Find(p, "update")->clear_after(); }},
      {"DroppedAfterOfCopyUp", kHostStep, "buffer 'master' may still be written by",
       [](auto& p) { Find(p, "copy_in")->clear_after(); }},
      {"KernelOfTheHostBeginsEarly", kHostStep, "(update, layer bigram): it may begin before",
       // Behind the copy, but not behind what else stands before it on compute.
       [](auto& p) { Find(p, "update")->set_after(0, InstructionIndex(p, "copy_out")); }},
      {"ShortenedLifeInKernelOfTheHost", kHostStep,
       "(update, layer bigram): buffer 'gradient_there' ends its life at instruction",
       [](auto& p) { Buffer(p, "gradient_there")->set_last(InstructionIndex(p, "update")); }},
      {"DroppedAfterOfSum", kSharded,
       "may begin before instruction 10 (sum_squares), which stands before it on compute",
       // Into a persistent buffer that nothing else touches at that time.
       [](auto& p) {
         Train(p)->mutable_instructions(11)->clear_after();
         Train(p)->mutable_instructions(11)->clear_in();
         *Train(p)->mutable_instructions(11)->add_in() = Train(p)->outputs(0).operand();
       }},
      {"SwappedCollectives", kHybrid,
       "it sums buffer 'gradient' over replica, but nothing has summed it over shard before",
       [](auto& p) {
         Swap(p, "reduce_scatter", "all_reduce bigram");
         Find(p, "all_reduce bigram")->set_after(0, 6);
         Find(p, "reduce_scatter")->set_after(0, 8);
       }},
      {"SwappedGatherAndScatter", kSharded, "does not live here",
       [](auto& p) { Swap(p, "all_gather", "reduce_scatter"); }},
      {"SwappedCopies", kOffloaded,
       "(copy_out exp_avg_here +1): it reads buffer 'exp_avg_here' where nothing has written it",
       [](auto& p) {
         Swap(p, "copy_in", "copy_out");
         for (auto& instruction : *Train(p)->mutable_instructions()) {
           if (instruction.opcode() == proto::COPY) instruction.set_after(0, Train(p)->instructions_size());
         }
         const int out = InstructionIndex(p, "copy_out"), in = InstructionIndex(p, "copy_in");
         Train(p)->mutable_instructions(out)->set_after(0, out - 1);
         Train(p)->mutable_instructions(in)->set_after(0, in - 1);
       }},
      {"AfterForward", kSharded, "(wait): it waits for instruction 7, which does not come before it",
       [](auto& p) { Find(p, "wait")->set_after(0, 7); }},
      {"AfterItself", kSharded,
       "(reduce_scatter bigram): it waits for instruction 7, which does not come before it",
       [](auto& p) { Find(p, "reduce_scatter")->set_after(0, 7); }},
      {"ShortenedLife", kSharded, "(sum_squares, layer bigram): buffer 'gradient' does not live here",
       [](auto& p) { Buffer(p, "gradient")->set_last(9); }},
      {"ShortenedLifeInTransfer", kSharded,
       "(reduce_scatter bigram): buffer 'flat_gradient' ends its life at instruction 7, before instruction 9 "
       "(wait)",
       [](auto& p) { Buffer(p, "flat_gradient")->set_last(7); }},
      {"ShortenedLifeInCopy", kOffloaded, "ends its life at instruction",
       [](auto& p) { Buffer(p, "exp_avg_here")->set_last(InstructionIndex(p, "copy_out")); }},
      {"LateBirth", kSharded, "(all_gather bigram): buffer 'gathered' does not live here",
       [](auto& p) { Buffer(p, "gathered")->set_first(1); }},
      {"TouchedInTransfer", kSharded,
       "(fill, layer bigram): buffer 'flat_gradient' may still be used by instruction 7 (reduce_scatter "
       "bigram)",
       [](auto& p) {
         *Train(p)->mutable_instructions(8) = p.programs(0).instructions(0);
         *Train(p)->mutable_instructions(8)->mutable_out(0) = WholeOf(p, "flat_gradient");
         Train(p)->mutable_instructions(9)->mutable_after()->Truncate(1);
       }},
      {"ReadInTransfer", kSharded,
       "(sum_squares, layer bigram): buffer 'gradient' may still be written by instruction 7 (reduce_scatter "
       "bigram)",
       [](auto& p) {
         *Train(p)->mutable_instructions(8) = *Find(p, "sum_squares");
         Buffer(p, "accumulator")->set_first(8);
         Train(p)->mutable_instructions(9)->mutable_after()->Truncate(1);
       }},
  };
}

std::vector<Damage> ContentDamages() {
  return {
      {"ReadUnwritten", kSharded,
       "(embedding_grad, layer bigram): it reads buffer 'dx' where nothing has written it",
       [](auto& p) { Find(p, "linear_cross_entropy_loss_grad")->mutable_out(1)->Clear(); }},
      {"GradientMissing", kSharded,
       "(reduce_scatter bigram): it reads buffer 'flat_gradient' where nothing has written it",
       [](auto& p) { Find(p, "embedding_grad")->mutable_out(0)->Clear(); }},
      {"PaddingMissing", kSharded,
       "(reduce_scatter bigram): it reads buffer 'flat_gradient' where nothing has written it",
       [](auto& p) { Find(p, "zero_padding")->mutable_out(0)->Clear(); }},
      {"MomentsNotCopied", kOffloaded,
       "(update, layer bigram): it reads buffer 'exp_avg_sq_here' where nothing has written it",
       [](auto& p) {
         Find(p, "copy_in")->mutable_in()->RemoveLast();
         Find(p, "copy_in")->mutable_out()->RemoveLast();
       }},
      {"NotInitialised", kSharded,
       "(all_gather bigram): it reads buffer 'parameters', which program init does not write",
       [](auto& p) {
         for (auto& instruction : *p.mutable_programs(0)->mutable_instructions()) {
           if (instruction.out(0).buffer_plus_one() == BufferIndex(p, "parameters") + 1)
             instruction.mutable_out(0)->Clear();
         }
       }},
      {"NoInput", kSharded,
       "(embedding, layer bigram): it reads buffer 'tokens', which no program and no input writes",
       [](auto& p) { Train(p)->mutable_inputs()->DeleteSubrange(0, 1); }},
      {"NoOutput", kSharded, "train_step, port 'grad_norm': nothing writes it",
       [](auto& p) { Find(p, "clip_coefficient")->mutable_out(0)->Clear(); }},
      {"StaleParameters", kWhole,
       "(embedding, layer bigram): it reads all of buffer 'parameters', of which only the own slice is up to "
       "date after train_step, instruction 12 (update",
       [](auto& p) {
         const int refresh = InstructionIndex(p, "all_gather");
         Drop(p, refresh + 1);
         Drop(p, refresh);
       }},
      {"StaleGradients", kWhole,
       "(sum_squares, layer bigram): it reads buffer 'flat_gradient', of which only the own slice is up to "
       "date",
       [](auto& p) { *Find(p, "sum_squares")->mutable_in(0) = WholeOf(p, "flat_gradient"); }},
  };
}

std::string NameOf(const testing::TestParamInfo<Damage>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Tables, PlantedDamageTest, testing::ValuesIn(TableDamages()), NameOf);
INSTANTIATE_TEST_SUITE_P(Operands, PlantedDamageTest, testing::ValuesIn(OperandDamages()), NameOf);
INSTANTIATE_TEST_SUITE_P(Transfers, PlantedDamageTest, testing::ValuesIn(TransferDamages()), NameOf);
INSTANTIATE_TEST_SUITE_P(Means, PlantedDamageTest, testing::ValuesIn(MeanDamages()), NameOf);
INSTANTIATE_TEST_SUITE_P(Order, PlantedDamageTest, testing::ValuesIn(OrderDamages()), NameOf);
INSTANTIATE_TEST_SUITE_P(Contents, PlantedDamageTest, testing::ValuesIn(ContentDamages()), NameOf);

//===----------------------------------------------------------------------===//
// Waiting in circles
//===----------------------------------------------------------------------===//

// The graph is sorted without relying on `after` to point backwards, so cycles can be planted.
TEST(VerifyCommunicationTest, RefusesCycles) {
  proto::Plan plan = TinyPlan(kSharded);
  // The gather waits for the kernel that waits for the gather.
  Find(plan, "all_gather")->add_after(InstructionIndex(plan, "embedding"));
  EXPECT_EQ(
      VerifyCommunication(plan).message(),
      "invalid plan: train_step, instruction 0 (all_gather bigram): it can never begin: it waits, over other "
      "instructions, for itself");
  plan = TinyPlan(kSharded);
  // Two communicators that wait for each other: the sum of the loss for a gather behind the sum.
  Find(plan, "reduce_scatter")->add_after(InstructionIndex(plan, "update"));
  EXPECT_NE(std::string(VerifyCommunication(plan).message()).find("it can never begin"), std::string::npos);
}

TEST(VerifyCommunicationTest, ForwardWithoutACycleIsNoDeadlock) {
  proto::Plan plan = TinyPlan(kSharded);
  // Later in the list, earlier in time: refused elsewhere, but nothing blocks.
  proto::Instruction* wait = Train(plan)->add_instructions();
  wait->set_opcode(proto::WAIT);
  wait->set_stream(proto::H2D);
  Find(plan, "reduce_scatter")->add_after(Train(plan)->instructions_size() - 1);
  EXPECT_EQ(VerifyCommunication(plan), absl::OkStatus());
  EXPECT_FALSE(VerifyPlan(plan).ok());
}

TEST(VerifyCommunicationTest, NamesTheCommunicators) {
  const auto names = [](const TinyPlanOptions& options) {
    std::string text;
    for (const CommunicatorUse& use : Communicators(TinyPlan(options)))
      text += proto::Stream_Name(use.stream) + "/" + proto::Axis_Name(use.axis) + " " +
              std::to_string(use.collectives) + "; ";
    return text;
  };
  EXPECT_EQ(names(kReplicated), "REDUCE/AXIS_WORLD 2; ");
  EXPECT_EQ(names(kSharded), "GATHER/AXIS_SHARD 1; REDUCE/AXIS_SHARD 1; REDUCE/AXIS_WORLD 2; ");
  EXPECT_EQ(names(kHybrid),
            "GATHER/AXIS_SHARD 1; REDUCE/AXIS_SHARD 2; REDUCE/AXIS_WORLD 1; REPLICA/AXIS_REPLICA 1; ");
}

}  // namespace
}  // namespace ft
