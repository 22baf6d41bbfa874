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
#include "runtime/base/state_shape.h"

namespace ft::compiler {

/// A setting that an optimizer has, under its name in formulas: what it may be.
struct Hyperparameter {
  std::string_view name;
  double low = 0;
  bool aboveLow = false; // low itself is none
  double below = std::numeric_limits<double>::infinity();
};

using Hyperparameters = std::map<std::string, double, std::less<>>;

/// A state of f32, 0 at first, whatever type weights have. Its name is that in checkpoints.
struct OptimizerState {
  std::string_view name;
  StateLayoutKind kind = StateLayoutKind::kElements;
};

/// `formulas`: assignments with semicolons between, in the order of the computation, to `parameter`, states
/// and names that only later formulas use. They are in terms of
///
///   gradient, parameter, states     of an element; the gradient is clipped
///   [formula]                       a number of the step: of hyperparameters, lr, t (the step, from 1) and
///                                   weight_decay (0 where a parameter does not decay), with + - * / ^, sqrt,
///                                   min and max; computed in f64, rounded to f32 once
///   + - * / and names of the elementwise primitives (runtime/base/elementwise.def)
///
/// Where gradient, parameter and states are 0, they must stay 0: so padding does.
///
/// A rule that looks at parameters whole has three parts. `direction` is by element, of the gradient, and
/// assigns to states of elements and to direction. `matrices`, and `vectors` for parameters of rank 0 and 1,
/// are of a whole parameter (of `direction`, `parameter` and states that are not of elements), and assign to
/// direction and to those states; beside the primitives, whose operands may have extents of 1, there are
///
///   row_means(x), column_means(x)   over the last dimension, and over the last but one, which become 1
///   root_mean_square(x)             of all elements
///   orthogonalized(x)               ft.orthogonalize; as the only formula
///
/// `formulas` are then of direction in the place of gradient and states.
struct Update {
  std::vector<OptimizerState> states;
  std::string_view formulas;
  std::string_view direction = {};
  std::string matrices = {}, vectors = {};
  bool looksAtWhole() const { return !direction.empty(); }
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

/// Null when there is none.
const OptimizerRule *findOptimizerRule(std::string_view name);
/// "adamw, adam, sgd"
std::string optimizerNames();

/// What a compilation says of all of them, called as the settings are.
struct HyperparameterSettings {
  double beta1, beta2, eps, weightDecay, momentum;
  bool nesterov;
  double beta2Decay, eps2, clipThreshold;
  bool scaleParameter;
};
Hyperparameters hyperparametersOf(const HyperparameterSettings &settings);

/// InvalidArgument: one of `rule`'s is not in its range.
absl::Status checkHyperparameters(const OptimizerRule &rule, const Hyperparameters &all);

} // namespace ft::compiler
