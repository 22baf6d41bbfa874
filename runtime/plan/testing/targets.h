// Machines made by hand, for tests.
#pragma once

#include "runtime/plan/target.h"

namespace ft {

// `seconds` once, `step` for each step, `bytes_per_s` for the bytes.
inline void SetLink(double seconds, double step, double bytes_per_s, Target::Link* link) {
  link->set_latency_s(seconds);
  link->set_step_s(step);
  link->set_bytes_per_s(bytes_per_s);
}

// Round figures, for tests that want any machine: nodes of 8 CPUs.
inline Target RoundTarget() {
  Target target;
  target.set_name("round");
  target.set_ranks_per_node(8);
  for (Target::Rate* rate : {target.mutable_f32(), target.mutable_bf16(), target.mutable_f16()})
    rate->set_reached(1e11);
  target.set_memory_bytes_per_s(1e10);
  target.set_kernel_latency_s(1e-6);
  SetLink(1e-5, 0, 1e9, target.mutable_node());
  SetLink(1e-4, 0, 1e8, target.mutable_network());
  SetLink(1e-5, 0, 1e10, target.mutable_copies());
  return target;
}

}  // namespace ft
