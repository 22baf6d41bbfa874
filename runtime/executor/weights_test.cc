// Weights between files and the arena where 16-bit parameters are computed with beside fp32 master weights.
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/backends/cpu/device/cpu_device.h"
#include "runtime/base/round_float.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/checkpoint/safetensors_writer.h"
#include "runtime/collective/plan_communicators.h"
#include "runtime/collective/testing/test_world.h"
#include "runtime/executor/load_weights.h"
#include "runtime/executor/save_weights.h"
#include "runtime/executor/state_at_rest.h"
#include "runtime/plan/bind.h"

namespace ft {
namespace {

constexpr uint64_t kUnitElements = 5 * 1024;
constexpr uint64_t kFirst = 1500, kSecond = 2500;  // elements of the parameters; the second begins at 2048

// How a unit lies at rest.
struct Layout {
  proto::DType dtype = proto::BF16;
  bool working_copy = true;
  bool bf16_alone = false;  // with no working copy: the only one is in bf16
  bool whole_copy = true;   // of the working copy; with none, of the only one
  bool master_on_host = false;
  bool two_axes = false;
  bool twin = false;  // the working copy is of the master's type: the host updates
};

class PlanBuilder {
 public:
  proto::Plan Build(const Layout& layout) {
    plan_.set_model("two");
    plan_.set_block_elements(1024);
    plan_.set_shards_optimizer(true);
    plan_.set_two_axes(layout.two_axes);
    plan_.add_units()->set_name("unit");
    plan_.mutable_units(0)->set_elements(kUnitElements);
    AddParameter("first", kFirst, 0);
    AddParameter("second", kSecond, 2048);
    const bool bits16 = layout.working_copy;
    if (layout.bf16_alone) {
      AddState("parameters", 2, layout.whole_copy, layout.master_on_host, layout.dtype);
      return plan_;
    }
    const uint64_t bytes = layout.dtype == proto::F32 && layout.twin ? 4 : 2;
    AddState("parameters", bits16 ? bytes : 4, layout.whole_copy, false, bits16 ? layout.dtype : proto::F32);
    if (bits16)
      AddState("master", layout.twin ? bytes : 4, false, layout.master_on_host,
               layout.twin ? layout.dtype : proto::F32);
    return plan_;
  }

 private:
  void AddParameter(const char* name, uint64_t elements, uint64_t offset) {
    proto::Parameter* parameter = plan_.add_parameters();
    parameter->set_name(name);
    parameter->add_shape(elements);
    parameter->set_offset(offset);
  }

  void AddState(const char* role, uint64_t bytes, bool whole, bool host, proto::DType dtype) {
    proto::Buffer* buffer = plan_.add_buffers();
    buffer->set_name(role);
    buffer->mutable_size()->set_kind(whole ? proto::SizeExpr::UNIT_FULL : proto::SizeExpr::UNIT_SLICE);
    buffer->mutable_size()->set_value(bytes);
    buffer->set_persistent(true);
    buffer->set_space(host ? proto::HOST : proto::DEVICE);
    const int index = plan_.buffers_size() - 1;
    proto::Plan::UnitState* state = plan_.add_unit_states();
    state->set_role(role);
    state->set_buffer(index);
    // Some instruction that says of which type it is.
    if (plan_.programs_size() == 0) plan_.add_programs()->set_name("init");
    proto::Instruction* release = plan_.mutable_programs(0)->add_instructions();
    release->set_opcode(proto::RELEASE);
    proto::Operand* operand = release->add_in();
    operand->set_buffer_plus_one(index + 1);
    operand->set_dtype(dtype);
    operand->set_whole(true);
  }

  proto::Plan plan_;
};

float Value(uint64_t element) { return 0.1f + static_cast<float>(element) * 0.37f; }

class WeightsTest : public ::testing::Test {
 protected:
  void SetUp() override { WriteWeights(path_, SafetensorsDType::kF32); }

  static void WriteWeights(const std::string& path, SafetensorsDType dtype) {
    auto writer = SafetensorsWriter::Create(path, {{"first", dtype, {kFirst}}, {"second", dtype, {kSecond}}});
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (const auto& [elements, offset] :
         {std::pair{kFirst, uint64_t{0}}, std::pair{kSecond, uint64_t{2048}}}) {
      std::vector<float> values;
      std::vector<uint16_t> rounded;
      for (uint64_t i = 0; i < elements; ++i) values.push_back(Value(offset + i));
      for (float value : values) rounded.push_back(RoundToBF16(value));
      const bool wide = dtype == SafetensorsDType::kF32;
      const void* data = wide ? static_cast<const void*>(values.data()) : rounded.data();
      ASSERT_TRUE((*writer)->Append(data, elements * SizeOf(dtype)).ok());
    }
    ASSERT_TRUE((*writer)->Commit().ok());
  }

  // Loads on every rank, looks at what is there, and saves it again.
  void RoundTrip(const Layout& layout, const Mesh& mesh,
                 const std::function<void(const proto::Plan&, const Executor&, int rank)>& look) {
    const proto::Plan plan = PlanBuilder().Build(layout);
    const BoundPlan bound = *BindPlan(plan, mesh, DeviceClass::kCpu);
    const std::string again = folder_.Path("again.safetensors");
    ft::testing::TestWorld world(mesh.world_size());
    world.RunThreads([&](const Rendezvous& rendezvous) {
      const KernelRegistry kernels;
      auto communicators = CreatePlanCommunicators(rendezvous, plan, mesh, {});
      ASSERT_TRUE(communicators.ok()) << communicators.status();
      CpuDevice device(kernels, {});
      const int rank = rendezvous.rank();
      auto executor = Executor::Create(plan, bound, device, communicators->table(), rank);
      ASSERT_TRUE(executor.ok()) << executor.status();
      const auto weights = OpenInitialWeights(plan, path_);
      ASSERT_TRUE(weights.ok()) << weights.status();
      ASSERT_TRUE(LoadWeights(plan, **executor, *weights).ok());
      look(plan, **executor, rank);
      ASSERT_TRUE(SaveWeights(plan, **executor, communicators->world(), again).ok());
    });
    std::string expected = path_;
    if (layout.bf16_alone || (layout.twin && layout.dtype == proto::BF16)) {  // saved as it is kept
      expected = folder_.Path("bf16.safetensors");
      WriteWeights(expected, SafetensorsDType::kBF16);
    }
    EXPECT_EQ(TempFolder::Read(again), TempFolder::Read(expected));
  }

  TempFolder folder_;
  const std::string path_ = folder_.Path("weights.safetensors");
};

// Of the parameter at this place of the unit; 0 in the padding.
float Expected(uint64_t element) {
  const bool padding = element >= 2048 + kSecond || (element >= kFirst && element < 2048);
  return padding ? 0 : Value(element);
}

uint16_t Bits16(const std::byte* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return bits;
}

void CheckCopy(const proto::Plan& plan, const Executor& executor, int rank, uint64_t begin,
               uint64_t elements) {
  const auto copy = FindWorkingCopy(plan, DTypesOfBuffers(plan), executor.operands(), 0);
  ASSERT_TRUE(copy.ok() && copy->has_value()) << copy.status();
  ASSERT_EQ((*copy)->begin, begin) << rank;
  ASSERT_EQ((*copy)->elements, elements);
  for (uint64_t i = 0; i < elements; ++i) {
    const float value = Expected(begin + i);
    ASSERT_EQ(Bits16((*copy)->At(begin + i)),
              (*copy)->dtype == DType::kBF16 ? RoundToBF16(value) : RoundToF16(value))
        << i;
  }
}

void CheckMaster(const proto::Plan& plan, const Executor& executor, uint64_t begin, uint64_t elements) {
  const auto master = FindMasterParameters(plan, DTypesOfBuffers(plan), executor.operands(), 0);
  ASSERT_TRUE(master.ok()) << master.status();
  ASSERT_EQ(master->begin, begin);
  ASSERT_EQ(master->elements, elements);
  const bool bf16 = master->dtype == DType::kBF16;
  for (uint64_t i = 0; i < elements; ++i) {
    const std::byte* at = master->At(begin + i);
    float value;
    if (bf16)
      ASSERT_EQ(Bits16(at), RoundToBF16(Expected(begin + i))) << i;
    else
      ASSERT_EQ((std::memcpy(&value, at, sizeof(value)), value), Expected(begin + i)) << i;
  }
}

TEST_F(WeightsTest, AWholeWorkingCopyBesideMasterSlices) {
  for (const proto::DType dtype : {proto::BF16, proto::F16}) {
    for (const int ranks : {1, 2, 3}) {
      const uint64_t slice = (5 + ranks - 1) / ranks * 1024;
      RoundTrip({.dtype = dtype}, {1, ranks},
                [&](const proto::Plan& plan, const Executor& executor, int rank) {
                  CheckCopy(plan, executor, rank, 0, slice * ranks);
                  CheckMaster(plan, executor, rank * slice, slice);
                });
    }
  }
}

TEST_F(WeightsTest, SlicesOfBothInHostMemoryAndOverTwoAxes) {
  RoundTrip({.whole_copy = false, .master_on_host = true, .two_axes = true}, {2, 2},
            [&](const proto::Plan& plan, const Executor& executor, int rank) {
              CheckCopy(plan, executor, rank, rank % 2 * 3072, 3072);
              CheckMaster(plan, executor, rank % 2 * 3072, 3072);
            });
}

// Those of the device and those that its host updates.
TEST_F(WeightsTest, TwinsAreLoadedBoth) {
  for (const proto::DType dtype : {proto::F32, proto::BF16}) {
    RoundTrip({.dtype = dtype, .master_on_host = true, .twin = true}, {1, 2},
              [&](const proto::Plan& plan, const Executor& executor, int rank) {
                CheckMaster(plan, executor, rank * 3072, 3072);
                const auto copy = FindWorkingCopy(plan, DTypesOfBuffers(plan), executor.operands(), 0);
                const auto master = FindMasterParameters(plan, DTypesOfBuffers(plan), executor.operands(), 0);
                ASSERT_TRUE(copy.ok() && copy->has_value()) << copy.status();
                ASSERT_EQ((*copy)->dtype, master->dtype);
                ASSERT_EQ((*copy)->elements, 6144u);
                EXPECT_EQ(std::memcmp((*copy)->At(rank * 3072), master->data, 3072 * SizeOf(master->dtype)),
                          0);
              });
  }
}

TEST_F(WeightsTest, WholeFp32ParametersOfAShardedOptimizer) {
  RoundTrip({.working_copy = false}, {1, 2}, [&](const proto::Plan& plan, const Executor& executor, int) {
    EXPECT_FALSE(FindWorkingCopy(plan, DTypesOfBuffers(plan), executor.operands(), 0)->has_value());
    CheckMaster(plan, executor, 0, 6144);
  });
}

TEST_F(WeightsTest, Bf16WithoutMasters) {
  for (bool whole : {true, false}) {
    const Layout layout = {
        .working_copy = false, .bf16_alone = true, .whole_copy = whole, .master_on_host = !whole};
    RoundTrip(layout, {1, 2}, [&](const proto::Plan& plan, const Executor& executor, int rank) {
      EXPECT_FALSE(FindWorkingCopy(plan, DTypesOfBuffers(plan), executor.operands(), 0)->has_value());
      CheckMaster(plan, executor, whole ? 0 : rank * 3072, whole ? 6144 : 3072);
    });
  }
}

TEST_F(WeightsTest, AWorkingCopyOfAnotherType) {
  const proto::Plan plan = PlanBuilder().Build({.dtype = proto::F32});
  const BoundPlan bound = *BindPlan(plan, {1, 1}, DeviceClass::kCpu);
  const KernelRegistry kernels;
  CpuDevice device(kernels, {});
  auto executor = Executor::Create(plan, bound, device, {}, 0);
  ASSERT_TRUE(executor.ok()) << executor.status();
  const auto weights = OpenInitialWeights(plan, path_);
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_NE(LoadWeights(plan, **executor, *weights).message().find("neither bf16 nor f16"),
            std::string::npos);
}

}  // namespace
}  // namespace ft
