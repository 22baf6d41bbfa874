// Everything that train.yaml and the flags of ftc compile decide.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/pipeline/options.h"

namespace ftc {

// Defaults of the run, overridden by ftexec's flags.
struct RunSettings {
  double lr = 3e-4;
  std::string lr_schedule = "constant";        // constant, linear, cosine
  std::string lr_convention = "transformers";  // or deepspeed; see runtime/executor/lr_schedule.h
  int64_t warmup_steps = 0;
  double warmup_ratio = 0;             // of `steps`
  std::string warmup_type = "linear";  // or log
  double warmup_min_lr = 0;
  double min_lr = 0;
  int64_t steps = 0;  // 0: one pass over the data
  int64_t seed = 42;
  int64_t max_bad_steps = 3;
  std::string state_dict_type = "full_state_dict";
};

struct Configuration {
  ft::compiler::CompileOptions options;  // but for runNumbers and runTexts, see CompileOptionsOf
  // A shipped machine or a file of one; what it has stands in options.overlap.target once all is read.
  std::string target = "cpu";
  RunSettings run;
  int64_t batch = 0;                   // sequences per rank and micro-step that the model must have; 0: any
  int64_t global_batch = 0;            // sequences of a step over all ranks; 0: any
  std::string mixed_precision = "no";  // stands for three dtypes; read by nobody else
};

// The options with the run settings stored in them.
ft::compiler::CompileOptions CompileOptionsOf(const Configuration& configuration);

}  // namespace ftc
