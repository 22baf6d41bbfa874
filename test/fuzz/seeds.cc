#include "test/fuzz/seeds.h"

#include <algorithm>
#include <map>

#include "runtime/base/cluster.h"
#include "runtime/base/cuda_workspace.h"
#include "runtime/base/flat_layout.h"
#include "runtime/plan/testing/update_body.h"
#include "test/conformance/case.h"
#include "test/conformance/harness.h"

namespace ft::fuzz {
namespace {

using conformance::Array;
using conformance::Case;

// Of a kernel, so many of the smallest conformance cases.
constexpr size_t kCasesOfAKernel = 16;

Operand OperandOf(const Array& array) {
  Operand operand = {.present = array.present, .dtype = array.dtype, .dims = array.dims};
  if (array.dtype == DType::kI32 || array.dtype == DType::kI64) {
    double most = 0;
    for (const double value : array.values) most = std::max(most, value);
    operand.below = static_cast<int64_t>(std::min(most, 1e9)) + 1;
  }
  return operand;
}

Operand Scratch(int64_t bytes) { return {.present = bytes > 0, .dtype = DType::kU8, .dims = {bytes}}; }

Seed SeedOf(const Case& c, DeviceClass device) {
  Seed seed = {.op = c.op, .label = c.label, .in = {}, .out = {}, .workspace = {}, .attributes = {}};
  for (const Array& array : c.in) seed.in.push_back(OperandOf(array));
  for (size_t i = 0; i < c.expected.size(); ++i) {
    Operand out = OperandOf(c.expected[i]);
    if (i < c.rules.tied.size() && c.rules.tied[i] >= 0 && c.in[c.rules.tied[i]].present)
      out.shares = c.rules.tied[i];
    seed.out.push_back(out);
  }
  seed.workspace = Scratch(conformance::WorkspaceBytes(c, device));
  seed.attributes = c.attributes.entries();
  if (c.attributes.cluster() != nullptr)
    seed.cluster = std::make_shared<const Cluster>(*c.attributes.cluster());
  return seed;
}

int64_t ElementsOf(const Case& c) {
  int64_t elements = 0;
  for (const auto* arrays : {&c.in, &c.expected}) {
    for (const Array& array : *arrays) elements += array.size();
  }
  return elements;
}

bool IsEmpty(const Case& c) {
  for (const auto* arrays : {&c.in, &c.expected}) {
    for (const Array& array : *arrays) {
      if (array.present && array.size() == 0) return true;
    }
  }
  return false;
}

// The smallest cases of each kernel that are not too large for many tries.
void AddCases(DeviceClass device, std::vector<Seed>& seeds) {
  const int64_t limit = device == DeviceClass::kCpu ? 30000 : 4000;
  std::map<std::string, std::vector<const Case*>> by_op;
  for (const Case& c : conformance::AllCases()) {
    if (!IsEmpty(c)) by_op[c.op].push_back(&c);
  }
  for (auto& [op, cases] : by_op) {
    std::stable_sort(cases.begin(), cases.end(),
                     [](const Case* a, const Case* b) { return ElementsOf(*a) < ElementsOf(*b); });
    size_t taken = 0;
    for (size_t i = 0; i < cases.size() && taken < kCasesOfAKernel; ++i) {
      // Of many, not the smallest alone.
      const Case& c = *cases[cases.size() > 4 * kCasesOfAKernel ? i * 3 : i];
      if (taken > 0 && ElementsOf(c) > limit) break;
      seeds.push_back(SeedOf(c, device));
      ++taken;
    }
  }
}

Operand Floats(std::vector<int64_t> dims, DType dtype = DType::kF32) {
  return {.dtype = dtype, .dims = std::move(dims)};
}
// A slice of a unit of two parameters from element `begin` on.
Operand Flat(int64_t elements, int64_t begin, DType dtype = DType::kF32) {
  return {.dtype = dtype,
          .dims = {elements},
          .flat_begin = begin,
          .parameters = {{0, 1400, true, 3}, {2048, 2900, false, 4}}};
}
Operand I64(int64_t elements) { return {.dtype = DType::kI64, .dims = {elements}}; }
Operand Shared(Operand operand, int with) {
  operand.shares = with;
  return operand;
}

void AddUpdates(DeviceClass device, std::vector<Seed>& seeds) {
  const int64_t n = 2048, begin = 1024;
  const auto add = [&](const UpdateTypes& types, bool stochastic) {
    Seed seed = {.op = "update",
                 .label = "gradient " + std::string(Name(types.gradient)) + ", parameter " +
                          std::string(Name(types.parameter)),
                 .in = {Flat(n, begin, types.gradient), Floats({2, kAdamwScalars})},
                 .out = {Flat(n, begin, types.parameter), Flat(n, begin), Flat(n, begin)},
                 .workspace = {},
                 .attributes = {},
                 .cluster = std::make_shared<const Cluster>(Cluster{AdamwBody(types), {}, nullptr})};
    seed.workspace.present = false;
    if (types.copy != DType::kF32) seed.out.push_back(Flat(n, begin, types.copy));
    if (stochastic) {
      seed.in.insert(seed.in.end(), {I64(3), I64(1)});
      if (device == DeviceClass::kCuda) seed.workspace = Scratch(kRoundingElements * 4);
    }
    seeds.push_back(seed);
  };
  for (const DType gradient : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const DType copy : {DType::kF32, DType::kBF16, DType::kF16})
      add({.gradient = gradient, .copy = copy}, false);
    add({.gradient = gradient, .parameter = DType::kBF16, .result = DType::kBF16}, false);
    add({.gradient = gradient, .parameter = DType::kBF16}, true);
  }
}

Seed Plain(std::string op, std::vector<Operand> in, std::vector<Operand> out, Entries attributes = {}) {
  Seed seed = {std::move(op), "", std::move(in), std::move(out), {}, std::move(attributes)};
  seed.workspace.present = false;
  return seed;
}

// Lengths and ids of segments of any value, and dropout, alone and together.
void AddAttention(DeviceClass device, std::vector<Seed>& seeds) {
  constexpr int64_t kBatch = 2, kPositions = 9, kHeads = 2, kSize = 4;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (unsigned form = 1; form < 8; ++form) {
      Entries attributes = {
          {"heads", kHeads}, {"kv_heads", kHeads}, {"causal", static_cast<int64_t>(form % 2)}};
      if (form & 4) attributes.insert(attributes.end(), {{"rate", 0.5}, {"stream", int64_t{3}}});
      Operand lengths = {.dtype = DType::kI32, .dims = {kBatch}},
              ids = {.dtype = DType::kI32, .dims = {kBatch, kPositions}}, rng = I64(3);
      lengths.present = (form & 1) != 0, ids.present = (form & 2) != 0, rng.present = (form & 4) != 0;
      const Operand x = Floats({kBatch, kPositions, kHeads * kSize}, dtype),
                    qkv = Floats({kBatch, kPositions, 3 * kHeads * kSize}, dtype),
                    lse = Floats({kBatch, kHeads, kPositions});
      const AttentionSizes sizes = {kBatch, kPositions, kHeads, kHeads, kSize, dtype, ids.present};
      const bool cuda = device == DeviceClass::kCuda;
      const Operand scratch = Scratch(cuda ? cuda_workspace::Attention(sizes) : AttentionWorkspace(sizes)),
                    more =
                        Scratch(cuda ? cuda_workspace::AttentionGrad(sizes) : AttentionGradWorkspace(sizes));
      seeds.push_back({"attention", "options", {x, x, x, lengths, ids, rng}, {x, lse}, scratch, attributes});
      seeds.push_back({"qkv_attention", "options", {qkv, lengths, ids, rng}, {x, lse}, scratch, attributes});
      seeds.push_back({"attention_grad",
                       "options",
                       {x, x, x, x, x, lse, lengths, ids, rng},
                       {x, x, x},
                       more,
                       attributes});
      seeds.push_back(
          {"qkv_attention_grad", "options", {x, qkv, x, lse, lengths, ids, rng}, {qkv}, more, attributes});
    }
  }
}

// Kernels whose tests are not a list of cases.
void AddSteps(std::vector<Seed>& seeds) {
  const Entries policy = {
      {"growth_factor", 2.0},     {"backoff_factor", 0.5},         {"min_scale", 0.0},
      {"hysteresis", int64_t{2}}, {"growth_interval", int64_t{3}}, {"dynamic", int64_t{1}}};
  const Entries first = {{"parameter", int64_t{3}}, {"value", 0.02}};
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    const Operand x = Floats({3, 7}, dtype);
    // The state that is read is the one that is written.
    Operand none;
    none.present = false;
    const Operand state = Floats({21});
    seeds.push_back(Plain("accumulate", {x, state}, {Shared(state, 1)}));
    for (const Operand& result : {x, Shared(x, 0)})
      seeds.push_back(Plain("accumulated", {x, state}, {result, Shared(state, 1)}));
    seeds.push_back(Plain("accumulated", {none, state}, {x, Shared(state, 1)}));
    seeds.push_back(
        Plain("sum_squares", {Flat(3000, 1024, dtype), I64(kAccumulatorWords)}, {I64(kAccumulatorWords)}));
    seeds.push_back(Plain("sum_squares", {Flat(3000, 1024, dtype), I64(kAccumulatorWords), Floats({})},
                          {I64(kAccumulatorWords)}));
    seeds.push_back(Plain("init_normal", {I64(3)}, {Flat(2000, 1024, dtype)}, first));
    seeds.push_back(Plain("init_uniform", {I64(3)}, {Flat(2000, 1024, dtype)}, first));
    seeds.push_back(Plain("init_constant", {I64(3)}, {Flat(2000, 1024, dtype)}, first));
    seeds.push_back(Plain("zero_padding", {}, {Flat(2000, 1024, dtype)}));
  }
  for (const DType dtype : {DType::kI32, DType::kI64, DType::kU8, DType::kF64})
    seeds.push_back(Plain("fill", {}, {{.dtype = dtype, .dims = {5, 3}}}, {{"value", 3.0}}));
  seeds.push_back(
      Plain("clip_coefficient", {I64(kAccumulatorWords)}, {Floats({}), Floats({})}, {{"max_norm", 1.0}}));
  seeds.push_back(Plain("clip_coefficient", {I64(kAccumulatorWords), Floats({}), Floats({3}), Floats({})},
                        {Floats({}), Floats({})}, {{"max_norm", 1.0}}));
  seeds.push_back(Plain("update_scalars", {Floats({}), Floats({}), I64(1)}, {Floats({2, kAdamwScalars})},
                        {{"formulas", std::string(kAdamwFormulas)}, {"weight_decay", 0.1}}));
  seeds.push_back(Plain("update_scalars", {Floats({}), Floats({}), I64(1), Floats({})}, {Floats({2, 2})},
                        {{"formulas", std::string("clip; inverse_ranks")}, {"weight_decay", 0.1}}));
  seeds.push_back(Plain("update_scaler", {Floats({})}, {Floats({3})}, policy));
  seeds.push_back(Plain("update_scaler", {Floats({}), Floats({})}, {Floats({3})}, policy));
  seeds.push_back(Plain("counted_mean", {I64(2), Floats({})}, {Floats({}), Floats({})}));
}

}  // namespace

std::vector<Seed> Seeds(DeviceClass device) {
  std::vector<Seed> seeds;
  AddCases(device, seeds);
  AddUpdates(device, seeds);
  AddAttention(device, seeds);
  AddSteps(seeds);
  return seeds;
}

}  // namespace ft::fuzz
