// A conformance case: one kernel on given operands, and what it must give. The lists are for any backend.
//
// Tolerances. Results are compared with f64 by absolute error below
//   8 * 2^-24 * (4 + sqrt(reduction)) * scale,
// scale the largest magnitude in the expected tensor (at least `magnitude`, for tensors that cancel to nearly
// nothing). A sum of n terms, each rounded to half an ulp, is off by about sqrt(n) half-ulps of its partial
// sums (errors of random sign); 4 stands for the few roundings of the elementary functions around the sum; 8
// is the margin of a maximum over all elements above a standard deviation, with what cancellation costs in
// these ranges of inputs.
//
// Results of 16 bits: the kernel is given numbers of its type, and so is the reference; the kernel computes
// in f32 and rounds each result once. So a result is off by the bound above, E, and by one rounding of what
// f32 gave, which is at most |expected| + E: half a unit of its last place, that is 2^(e - 8) for bf16 (8
// bits of precision) and 2^(e - 11) for f16 (11 bits), e its exponent or that of the smallest normal number.
// Sums kept in 16 bits exceed that.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/kernel.h"
#include "test/conformance/array.h"

namespace ft::conformance {

using Arrays = std::vector<Array>;

struct Rules {
  double reduction = 1;         // length of the longest sum
  double magnitude = 0;         // see above
  int64_t workspace_bytes = 0;  // on the CPU
  // For result i, the operand whose buffer it must share (acc), or -1.
  std::vector<int> tied = {};
  // Pairs (result, operand): the case is run again with these sharing a buffer (getReusableOperand).
  std::vector<std::pair<int, int>> reusable = {};
  int64_t cuda_workspace_bytes = 0;  // runtime/base/cuda_workspace.h
  // For each result, or none at all: what CUDA's kernels may be off by in addition, element by element,
  // because they round where the reference and the CPU do not (attention in 16 bits: probabilities and
  // gradients of scores, for tensor cores). The cases derive it.
  Arrays cuda_rounding = {};
  // The same for CPUs with AVX512_BF16 or AMX, whose products take nothing but bf16.
  Arrays bf16_rounding = {};
};

struct Case {
  std::string op;
  std::string label;
  Arrays in;
  KernelAttributes attributes;
  Arrays expected;  // one per result: shape, type and values
  Rules rules = {};
};

std::vector<Case> RotaryTableCases();
std::vector<Case> PrimitiveCases();  // part of ClusterCases
std::vector<Case> LogitCases();      // too
std::vector<Case> ClusterCases();
std::vector<Case> ShapeCases();
std::vector<Case> IndexCases();
std::vector<Case> AnyAxisCases();  // part of MovementCases
std::vector<Case> MovementCases();
std::vector<Case> MatmulCases();
std::vector<Case> FusedGeluCases();
std::vector<Case> ExactBiasGradCases();  // of bias_grad.h
std::vector<Case> AttentionCases();
std::vector<Case> LossCases();
std::vector<Case> LatentCases();
std::vector<Case> StepCases();
const std::vector<Case>& AllCases();  // all of these, made once

// The same op by op. All cases together take seconds to make: a program that names its tests by ops, and runs
// some of them, makes the lists of those alone.
struct CaseList {
  std::vector<std::string> ops;
  std::vector<Case> (*make)();
};
const std::vector<CaseList>& CaseLists();
std::vector<std::string> Ops();                         // of all lists, in their order
std::vector<const Case*> CasesOf(std::string_view op);  // made once, with those of its list

KernelAttributes Attributes(std::vector<std::pair<std::string, KernelAttributes::Value>> entries);

// The derivative of sum_i <upstream_i, f(in)_i> with respect to operand `wrt`, by central differences in f64.
Array NumericGradient(const std::function<Arrays(const Arrays&)>& f, const Arrays& in, size_t wrt,
                      const Arrays& upstream);

}  // namespace ft::conformance
