// The table of optimizers: what each of them does in a step, as formulas. Nothing else in the code knows
// their names: ops, code for every device, state and its places in checkpoints, costs, flags and
// documentation follow from a row.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace ft::compiler {

/// A setting that an optimizer has, under its name in formulas: what it may be.
struct Hyperparameter {
  std::string_view name;
  double low = 0;
  bool aboveLow = false; // low itself is none
  double below = std::numeric_limits<double>::infinity();
};

using Hyperparameters = std::map<std::string, double, std::less<>>;

/// `formulas`: assignments with semicolons between, in the order of the computation, to `parameter`, states
/// and names that only later formulas use. They are in terms of
///
///   gradient, parameter, states     of an element; the gradient is clipped, a state is 0 at first
///   [formula]                       a number of the step: of hyperparameters, lr, t (the step, from 1) and
///                                   weight_decay (0 where a parameter does not decay), with + - * / ^, sqrt,
///                                   min and max; computed in f64, rounded to f32 once
///   + - * / and names of the elementwise primitives (runtime/base/elementwise.def)
///   name = orthogonalized(...)      the argument with each matrix of the unit whole (ft.orthogonalize):
///   once,
///                                   after all states; behind it there are that name and parameter alone
///
/// Where gradient, parameter and states are 0, they must stay 0: so padding does. States have f32, whatever
/// the weights have; their names are those in checkpoints.
struct Update {
  std::vector<std::string_view> states;
  std::string_view formulas;
};

struct OptimizerRule {
  std::string_view name;
  std::string_view summary; // with its source
  /// Of hyperparameters within their ranges. InvalidArgument: they do not go together.
  absl::StatusOr<Update> (*update)(const Hyperparameters &);
  std::vector<Hyperparameter> hyperparameters;
  /// Settings and their values where the user says nothing, if those are not the ones that others have.
  std::vector<std::pair<std::string_view, std::string_view>> usual = {};
  /// Of a rule that is for hidden matrices alone: the row that updates all other parameters.
  std::string_view others = {};
  bool has(std::string_view hyperparameter) const;
};

const std::vector<OptimizerRule> &optimizerRules();

/// The function of formulas that wants whole matrices.
inline constexpr std::string_view kOrthogonalized = "orthogonalized";

/// Null when there is none.
const OptimizerRule *findOptimizerRule(std::string_view name);
/// "adamw, adam, sgd"
std::string optimizerNames();

/// InvalidArgument: one of `rule`'s is not in its range.
absl::Status checkHyperparameters(const OptimizerRule &rule, const Hyperparameters &all);

} // namespace ft::compiler
