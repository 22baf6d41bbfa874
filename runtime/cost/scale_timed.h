// Kernels that were timed on another machine than the one they were timed on.
#pragma once

#include "runtime/plan/mesh.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/target.h"

namespace ft {

// What was timed counts before any rate: for a machine like `timed` with other rates, `target`, each timed
// kernel of `plan` takes as much longer or shorter as the forms say that it does with those rates. Kernels
// that the plan does not have stay as they are.
void ScaleTimed(const proto::Plan& plan, const Mesh& mesh, const Target& timed, Target& target);

}  // namespace ft
