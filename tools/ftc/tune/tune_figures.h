// What people compare of a row of ftc tune.
#pragma once

#include "runtime/plan/plan.pb.h"
#include "tools/ftc/tune/tuning.h"

namespace ftc {

struct Figures {
  double tokens_per_s = 0;  // of all ranks
  double mfu = 0;           // by the data sheet's peak of the type computed with; 0: peak not known
};

Figures FiguresOf(const Tuning& tuning, const ft::compiler::TuneTrial& trial);

// The type that is computed with.
inline ft::proto::DType DTypeOf(const ft::compiler::CompileOptions& options) {
  if (options.paramDtype == "bf16") return ft::proto::BF16;
  return options.paramDtype == "fp16" ? ft::proto::F16 : ft::proto::F32;
}

}  // namespace ftc
