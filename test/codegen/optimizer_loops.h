// Every optimizer of the table as a loop in f64, which shares no code with it.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "compiler/optimizer/passes.h"

namespace ft::compiler::testing {

// What gradients are multiplied by before a step: the coefficient of the norm, and 1 / the ranks that they
// are a sum over.
inline constexpr double kCoefficient = 0.75;
inline constexpr float kInverseRanks = 1.0f / 3;

// One step of one element in f64: g is the clipped gradient, t counts from 1, s its states. False where the
// step is a jump near which it lies.
using Step = bool (*)(double& p, double g, double t, double decay, double lr, double* s);

struct Optimizer {
  const char* label;
  std::string name;
  std::function<void(InsertOptimizerPassOptions&)> set;
  Step step;
  double lr;
  bool isDirection = false;  // of two updates that which gives the direction, in the parameter's place
};

inline bool adamStep(double& p, double g, double t, double lr, double* s) {
  s[0] = 0.9 * s[0] + 0.1 * g;
  s[1] = 0.95 * s[1] + 0.05 * g * g;
  p -= lr / (1 - std::pow(0.9, t)) * s[0] / (std::sqrt(s[1]) / std::sqrt(1 - std::pow(0.95, t)) + 1e-8);
  return true;
}

// As torch.optim.SGD begins.
inline double momentumOf(double g, double t, double* s) { return s[0] = t == 1 ? g : 0.9 * s[0] + g; }

inline const std::vector<Optimizer>& optimizers() {
  using Options = InsertOptimizerPassOptions;
  static const std::vector<Optimizer> list = {
      {"AdamW", "adamw", [](Options&) {},
       [](double& p, double g, double t, double decay, double lr, double* s) {
         p *= 1 - lr * decay;
         return adamStep(p, g, t, lr, s);
       },
       1e-2},
      {"Adam", "adam", [](Options&) {},
       [](double& p, double g, double t, double decay, double lr, double* s) {
         return adamStep(p, g + decay * p, t, lr, s);
       },
       1e-2},
      {"SGD", "sgd", [](Options&) {},
       [](double& p, double g, double, double decay, double lr, double*) {
         p -= lr * (g + decay * p);
         return true;
       },
       1e-2},
      {"SGD with momentum", "sgd", [](Options& o) { o.momentum = 0.9; },
       [](double& p, double g, double t, double decay, double lr, double* s) {
         p -= lr * momentumOf(g + decay * p, t, s);
         return true;
       },
       1e-2},
      {"SGD with Nesterov's momentum", "sgd", [](Options& o) { o.momentum = 0.9, o.nesterov = true; },
       [](double& p, double g, double t, double decay, double lr, double* s) {
         g += decay * p;
         p -= lr * (g + 0.9 * momentumOf(g, t, s));
         return true;
       },
       1e-2},
      {"Lion", "lion", [](Options& o) { o.beta2 = 0.99; },
       [](double& p, double g, double, double decay, double lr, double* s) {
         const double direction = 0.9 * s[0] + 0.1 * g;
         s[0] = 0.99 * s[0] + 0.01 * g;
         p = p * (1 - lr * decay) - lr * ((direction > 0) - (direction < 0));
         return std::abs(direction) > 1e-6;
       },
       1e-2},
      {"Muon's direction", "muon", [](Options& o) { o.momentum = 0.95, o.nesterov = true; },
       [](double& p, double g, double, double, double, double* s) {
         s[0] += 0.05 * (g - s[0]);
         p = g + 0.95 * (s[0] - g);
         return true;
       },
       1e-2, true},
      // What it is given is the direction, which is a mean and clipped already.
      {"Muon", "muon", [](Options& o) { o.momentum = 0.95; },
       [](double& p, double g, double, double decay, double lr, double*) {
         p = p * (1 - lr * decay) - lr * g / (kCoefficient * kInverseRanks);
         return true;
       },
       1e-2},
      {"Adafactor's direction", "adafactor", [](Options&) {},
       [](double& p, double g, double, double, double, double*) {
         p = g;
         return true;
       },
       1e-2, true},
      {"Adafactor", "adafactor", [](Options&) {},
       [](double& p, double g, double t, double decay, double lr, double*) {
         p = p * (1 - lr * decay) - std::min(lr, 1 / std::sqrt(t)) * g / (kCoefficient * kInverseRanks);
         return true;
       },
       0.5}};
  return list;
}

}  // namespace ft::compiler::testing
