// Damage planted everywhere in plans that were compiled from models: each wait, each order, each axis,
// life and address in turn. The verifier, which knows nothing but the plan, refuses every one.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/report.h"
#include "runtime/plan/testing/targets.h"
#include "runtime/plan/verify_bound.h"
#include "runtime/plan/verify_plan.h"
#include "runtime/plan/verify_transfers.h"
#include "runtime/plan/verify_worlds.h"
#include "test/support/compile_plan.h"

namespace ft {
namespace {

struct Case {
  const char* name;
  const char* model;
  std::function<void(compiler::CompileOptions&)> set;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

class CompiledPlanTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    plan_ = CompilePlan(GetParam().model, "debug", GetParam().set);
    ASSERT_EQ(VerifyPlan(plan_), absl::OkStatus());
  }

  // Calls `visit` for all instructions, with their program.
  void ForAll(const std::function<void(int, int, const proto::Instruction&)>& visit) const {
    for (int p = 0; p < plan_.programs_size(); ++p) {
      for (int i = 0; i < plan_.programs(p).instructions_size(); ++i)
        visit(p, i, plan_.programs(p).instructions(i));
    }
  }

  // Expects a plan with `damage` in one instruction to be refused by name.
  void ExpectRefused(int program, int instruction, const char* what,
                     const std::function<void(proto::Instruction*)>& damage) {
    proto::Instruction* here = plan_.mutable_programs(program)->mutable_instructions(instruction);
    const proto::Instruction before = *here;
    damage(here);
    ExpectDamageSeen(program, instruction, what);
    *here = before;
  }

  void ExpectDamageSeen(int program, int instruction, const char* what) {
    ++planted_;
    const absl::Status status = VerifyPlan(plan_);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
        << what << " in instruction " << instruction << " of " << plan_.programs(program).name() << ": "
        << plan_.programs(program).instructions(instruction).ShortDebugString();
    EXPECT_NE(std::string(status.message()).find("instruction"), std::string::npos) << status;
  }

  // False when another wait does the work of the one at `i`: one before it, for something later on the same
  // stream, or one behind it, before anything touches what the transfer moves and before the end of its life.
  bool IsNeeded(int p, int i) const {
    const proto::Program& program = plan_.programs(p);
    const proto::Instruction& start =
        program.instructions(static_cast<int>(program.instructions(i).after(0)));
    const auto touches = [&](const proto::Instruction& instruction) {
      for (const auto* operands : {&instruction.in(), &instruction.out()}) {
        for (const proto::Operand& operand : *operands) {
          for (const auto* moved : {&start.in(), &start.out()}) {
            for (const proto::Operand& other : *moved) {
              if (operand.buffer_plus_one() == other.buffer_plus_one()) return true;
            }
          }
        }
      }
      return false;
    };
    const auto waits_for_its_stream = [&](const proto::Instruction& instruction) {
      return instruction.opcode() == proto::WAIT &&
             program.instructions(static_cast<int>(instruction.after(0))).stream() == start.stream();
    };
    for (int k = 0; k < i; ++k) {
      const proto::Instruction& instruction = program.instructions(k);
      if (waits_for_its_stream(instruction) && instruction.after(0) > program.instructions(i).after(0))
        return false;
    }
    for (int k = i + 1; k < program.instructions_size(); ++k) {
      const proto::Instruction& instruction = program.instructions(k);
      if (instruction.opcode() != proto::WAIT) {
        if (touches(instruction)) return true;
        continue;
      }
      if (!waits_for_its_stream(instruction)) continue;
      for (const auto* moved : {&start.in(), &start.out()}) {
        for (const proto::Operand& operand : *moved) {
          const proto::Buffer& buffer = plan_.buffers(static_cast<int>(operand.buffer_plus_one()) - 1);
          if (!buffer.persistent() && buffer.last() < static_cast<uint32_t>(k)) return true;
        }
      }
      return false;
    }
    return true;
  }

  // Two buffers that live together, laid over each other, for many pairs.
  void ExpectSharedAddressesSeen(const BoundPlan& good) {
    const auto live_together = [&](const proto::Buffer& a, const proto::Buffer& b) {
      if (a.space() != b.space()) return false;
      if (a.persistent() || b.persistent()) return true;
      return a.program() == b.program() && a.first() <= b.last() && b.first() <= a.last();
    };
    for (int a = 0; a < plan_.buffers_size(); ++a) {
      for (int b = 0; b < plan_.buffers_size(); b += 1 + a % 7) {
        if (a == b || good.sizes[a] == 0 || good.sizes[b] == 0) continue;
        if (!live_together(plan_.buffers(a), plan_.buffers(b))) continue;
        BoundPlan bound = good;
        // The last bytes of b.
        bound.offsets[a] = good.offsets[b] + (good.sizes[b] - 1) / 256 * 256;
        ++planted_;
        EXPECT_FALSE(VerifyBound(plan_, bound).ok())
            << plan_.buffers(a).name() << " laid over " << plan_.buffers(b).name();
      }
    }
  }

  bool MovesUnits(const proto::Instruction& instruction) const {
    return plan_.buffers(instruction.in(0).buffer_plus_one() - 1).size().kind() != proto::SizeExpr::CONSTANT;
  }

  // Plus one; 0 where the program has no such input.
  uint32_t BufferOfPort(int program, const std::string& name) const {
    for (const proto::Port& port : plan_.programs(program).inputs())
      if (port.name() == name) return port.operand().buffer_plus_one();
    return 0;
  }

  // The mean of losses, which the verifier knows no more about than any other product.
  bool IsOfLoss(int program, const proto::Instruction& instruction) const {
    return plan_.programs(program).name() == "train_step" && instruction.phase() == "optimizer" &&
           instruction.kernel() != "sum_squares" && instruction.kernel() != "update_scalars";
  }

  proto::Plan plan_;
  int planted_ = 0;
};

TEST_P(CompiledPlanTest, EveryWorldBinds) {
  EXPECT_EQ(VerifyWorlds(plan_, SampleMeshes(plan_)), absl::OkStatus());
  EXPECT_EQ(VerifyWorlds(plan_, AllMeshes(plan_, 64)), absl::OkStatus());
}

TEST_P(CompiledPlanTest, DroppedWaits) {
  int needed = 0;
  ForAll([&](int p, int i, const proto::Instruction& instruction) {
    if (instruction.opcode() != proto::WAIT || !IsNeeded(p, i)) return;
    ++needed;
    ExpectRefused(p, i, "a dropped wait", [](proto::Instruction* wait) {
      wait->set_opcode(proto::RELEASE);
      wait->clear_after();
    });
  });
  EXPECT_GT(needed, 0);
}

TEST_P(CompiledPlanTest, DroppedAfter) {
  ForAll([&](int p, int i, const proto::Instruction& instruction) {
    if (!IsTransfer(instruction.opcode()) || instruction.after_size() == 0) return;
    ExpectRefused(p, i, "a dropped order", [](proto::Instruction* start) { start->clear_after(); });
    ExpectRefused(p, i, "an order that points forward",
                  [&](proto::Instruction* start) { start->set_after(0, i + 1); });
  });
  EXPECT_GT(planted_, 0);
}

TEST_P(CompiledPlanTest, WaitsForAnother) {
  ForAll([&](int p, int i, const proto::Instruction& instruction) {
    if (instruction.opcode() != proto::WAIT || !IsNeeded(p, i)) return;
    const auto waited = static_cast<int>(instruction.after(0));
    for (int earlier = waited - 1; earlier >= 0; --earlier) {
      const proto::Instruction& other = plan_.programs(p).instructions(earlier);
      if (other.stream() != plan_.programs(p).instructions(waited).stream() || !IsTransfer(other.opcode()))
        continue;
      ExpectRefused(p, i, "a wait for the transfer before",
                    [&](proto::Instruction* wait) { wait->set_after(0, earlier); });
      return;
    }
  });
}

// Whatever reads 1 / the ranks for gradients: backward in each micro-step, or each norm and the update.
TEST_P(CompiledPlanTest, ForgottenMean) {
  ForAll([&](int p, int i, const proto::Instruction& instruction) {
    const uint32_t inverse_ranks = BufferOfPort(p, "inverse_ranks"), other = BufferOfPort(p, "lr");
    if (inverse_ranks == 0 || IsOfLoss(p, instruction)) return;
    for (int k = 0; k < instruction.in_size(); ++k) {
      if (instruction.in(k).buffer_plus_one() != inverse_ranks) continue;
      ++planted_;
      proto::Plan damaged = plan_;
      damaged.mutable_programs(p)->mutable_instructions(i)->mutable_in(k)->set_buffer_plus_one(other);
      const absl::Status status = VerifyPlan(damaged);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
          << plan_.programs(p).name() << ": " << instruction.ShortDebugString();
    }
  });
  EXPECT_GT(planted_, 0);
}

TEST_P(CompiledPlanTest, WrongAxis) {
  ForAll([&](int p, int i, const proto::Instruction& instruction) {
    if (!IsCollective(instruction.opcode())) return;
    const proto::Axis other = Shards(plan_) ? proto::AXIS_REPLICA : proto::AXIS_SHARD;
    if (!plan_.two_axes())
      ExpectRefused(p, i, "an axis that the plan has not",
                    [&](proto::Instruction* c) { c->set_axis(other); });
    ExpectRefused(p, i, "no axis", [](proto::Instruction* c) { c->set_axis(proto::AXIS_NONE); });
    ExpectRefused(p, i, "a stream of copies", [](proto::Instruction* c) { c->set_stream(proto::D2H); });
    if (!MovesUnits(instruction)) return;
    for (const proto::Axis axis : {proto::AXIS_SHARD, proto::AXIS_REPLICA, proto::AXIS_WORLD}) {
      const bool same =
          axis == instruction.axis() || (!plan_.two_axes() && instruction.opcode() == proto::ALL_REDUCE);
      if (!same) ExpectRefused(p, i, "another axis", [&](proto::Instruction* c) { c->set_axis(axis); });
    }
  });
  EXPECT_GT(planted_, 0);
}

TEST_P(CompiledPlanTest, SwappedGathers) {
  std::map<int, int> before;  // program -> the gather before
  ForAll([&](int p, int i, const proto::Instruction& instruction) {
    if (instruction.opcode() != proto::ALL_GATHER) return;
    const auto found = before.find(p);
    const int other = found == before.end() ? -1 : found->second;
    before[p] = i;
    if (other < 0) return;
    auto* instructions = plan_.mutable_programs(p)->mutable_instructions();
    const auto swap = [&] {
      instructions->SwapElements(other, i);
      // What they wait for stays where it was.
      instructions->at(other).mutable_after()->Swap(instructions->at(i).mutable_after());
    };
    swap();
    ExpectDamageSeen(p, i, "two gathers that changed places");
    swap();
  });
}

TEST_P(CompiledPlanTest, ShortenedLives) {
  for (int b = 0; b < plan_.buffers_size(); ++b) {
    proto::Buffer* buffer = plan_.mutable_buffers(b);
    if (buffer->persistent() || buffer->first() == buffer->last()) continue;
    const int program = static_cast<int>(buffer->program());
    buffer->set_last(buffer->last() - 1);
    ExpectDamageSeen(program, static_cast<int>(buffer->last()),
                     ("a life cut at its end: " + buffer->name()).c_str());
    buffer->set_last(buffer->last() + 1);
    buffer->set_first(buffer->first() + 1);
    ExpectDamageSeen(program, static_cast<int>(buffer->first()),
                     ("a life cut at its begin: " + buffer->name()).c_str());
    buffer->set_first(buffer->first() - 1);
  }
  EXPECT_GT(planted_, 0);
}

// Or that of the device, where the host computes.
TEST_P(CompiledPlanTest, HostMemoryInKernels) {
  ForAll([&](int p, int i, const proto::Instruction& instruction) {
    if (instruction.opcode() != proto::KERNEL || instruction.out_size() == 0) return;
    if (instruction.out(0).buffer_plus_one() == 0) return;
    proto::Buffer* buffer = plan_.mutable_buffers(static_cast<int>(instruction.out(0).buffer_plus_one()) - 1);
    const proto::MemorySpace space = buffer->space();
    buffer->set_space(space == proto::DEVICE ? proto::HOST : proto::DEVICE);
    const absl::Status status = VerifyPlan(plan_);
    EXPECT_FALSE(status.ok()) << buffer->name() << " in other memory, used by instruction " << i << " of "
                              << plan_.programs(p).name();
    buffer->set_space(space);
  });
}

TEST_P(CompiledPlanTest, UnwrittenBuffers) {
  std::vector<bool> written(plan_.buffers_size(), false);
  ForAll([&](int p, int i, const proto::Instruction& instruction) {
    for (int o = 0; o < instruction.out_size(); ++o) {
      const uint32_t plus_one = instruction.out(o).buffer_plus_one();
      if (plus_one == 0 || written[plus_one - 1]) continue;
      written[plus_one - 1] = true;
      if (instruction.opcode() != proto::KERNEL || plan_.buffers(static_cast<int>(plus_one) - 1).persistent())
        continue;
      bool read = false;
      for (const proto::Instruction& later : plan_.programs(p).instructions()) {
        for (const proto::Operand& in : later.in())
          read |= in.buffer_plus_one() == plus_one && later.opcode() != proto::RELEASE;
      }
      if (!read) continue;
      ExpectRefused(p, i, "an output that is not written",
                    [&](proto::Instruction* k) { k->mutable_out(o)->Clear(); });
    }
  });
  EXPECT_GT(planted_, 0);
}

// Where kernels want scratch, and how much, differs between devices; addresses are proved on both.
TEST_P(CompiledPlanTest, SharedAddresses) {
  for (const DeviceClass device : kDeviceClasses) {
    const BoundPlan good = *BindPlan(plan_, *MeshFor(plan_, 4, 2), device);
    ASSERT_EQ(VerifyBound(plan_, good), absl::OkStatus()) << Name(device);
    ExpectSharedAddressesSeen(good);
    EXPECT_GT(planted_, 0);
    planted_ = 0;
  }
}

// The products are what a GPU is bought for: their scratch is at the peak of no CPU, and of every GPU.
TEST_P(CompiledPlanTest, ProductsHaveScratchOnCuda) {
  const Mesh mesh = *MeshFor(plan_, 4, 2);
  const BoundPlan cpu = *BindPlan(plan_, mesh, DeviceClass::kCpu);
  const BoundPlan cuda = *BindPlan(plan_, mesh, DeviceClass::kCuda);
  int products = 0;
  ForAll([&](int, int, const proto::Instruction& instruction) {
    if (instruction.kernel() != "matmul") return;
    const uint32_t scratch = instruction.workspace().buffer_plus_one() - 1;
    EXPECT_EQ(cpu.sizes.at(scratch), 0u);
    EXPECT_EQ(cuda.sizes.at(scratch), uint64_t{32} << 20);
    ++products;
  });
  EXPECT_GT(products, 0);
  EXPECT_GE(cuda.device.max_live_bytes, cuda.device.persistent_bytes + (uint64_t{32} << 20));
  EXPECT_LT(cpu.arena_bytes(), cuda.arena_bytes());
  EXPECT_EQ(cpu.device.persistent_bytes, cuda.device.persistent_bytes);
  EXPECT_EQ(cpu.host_arena_bytes(), cuda.host_arena_bytes());
}

// gpt2's debug preset has two layers 64 wide: each step has three products for each one of forward.
uint64_t ModelFlopsOfGpt2(const proto::Plan& plan) {
  constexpr uint64_t kLayers = 2, kHidden = 64;
  const uint64_t tokens = plan.batch() * plan.seq_len();
  const uint64_t weights = kLayers * 12 * kHidden * kHidden + plan.vocab_size() * kHidden;
  const uint64_t pairs =
      plan.batch() * plan.seq_len() * (plan.seq_len() + 1) / 2;  // causal, each head size once
  return 3 * (2 * weights * tokens + 2 * 2 * kLayers * pairs * kHidden);
}

TEST(ModelFlopsTest, AreThoseOfTheModelWhateverIsRecomputed) {
  for (const char* remat : {"none", "every_n:1", "segments:1", "ops:attention,mlp", "full"}) {
    for (const int64_t micro_steps : {1, 3}) {
      const proto::Plan plan = CompilePlan("gpt2", "debug", [&](compiler::CompileOptions& o) {
        o.strategy = "full_shard";
        o.remat = remat;
        o.microSteps = micro_steps;
      });
      const uint64_t steps = static_cast<uint64_t>(micro_steps);
      EXPECT_EQ(ModelFlops(plan), steps * ModelFlopsOfGpt2(plan)) << remat << ", micro-steps " << micro_steps;
      const BoundPlan bound = *BindPlan(plan, *MeshFor(plan, 2), DeviceClass::kCpu);
      const FlopsReport flops = ReportPlan(plan, bound).flops;
      EXPECT_EQ(flops.model, ModelFlops(plan));
      EXPECT_EQ(flops.recompute > 0, std::string(remat) != "none");
      EXPECT_LT(flops.model, flops.total());
    }
  }
}

std::vector<Case> Cases() {
  const auto strategy = [](const char* name) {
    return [name](compiler::CompileOptions& o) { o.strategy = name; };
  };
  return {
      {"Gpt2NoShard", "gpt2", strategy("no_shard")},
      {"Gpt2Zero1", "gpt2", strategy("zero1")},
      {"Gpt2ShardGradOp", "gpt2", strategy("shard_grad_op")},
      {"Gpt2FullShard", "gpt2", strategy("full_shard")},
      {"Gpt2HybridShard", "gpt2", strategy("hybrid_shard")},
      {"Gpt2HybridShardZero2", "gpt2", strategy("hybrid_shard_zero2")},
      {"LlamaFullShard", "llama", strategy("full_shard")},
      {"FreeTransformerHybrid", "free_transformer", strategy("hybrid_shard")},
      {"LlamaBf16", "llama",
       [](compiler::CompileOptions& o) {
         o.strategy = "shard_grad_op";
         o.paramDtype = o.reduceDtype = o.bufferDtype = "bf16";
       }},
      {"Gpt2MicroSteps", "gpt2",
       [](compiler::CompileOptions& o) {
         o.strategy = "full_shard";
         o.microSteps = 3;
       }},
      {"Gpt2Offload", "gpt2",
       [](compiler::CompileOptions& o) {
         o.strategy = "full_shard";
         o.offloadOptimizer = true;
       }},
      {"Gpt2HostStep", "gpt2",
       [](compiler::CompileOptions& o) {
         o.strategy = "zero1";
         o.offloadOptimizer = o.offloadStep = true;
       }},
      {"Gpt2Remat", "gpt2",
       [](compiler::CompileOptions& o) {
         o.strategy = "full_shard";
         o.remat = "every_n:1";
       }},
  };
}

std::string NameOf(const testing::TestParamInfo<Case>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Compiled, CompiledPlanTest, testing::ValuesIn(Cases()), NameOf);

}  // namespace
}  // namespace ft
