// What --dump prints of a module: all of it, or some ops.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"
#include "tools/ftc/dump_request.h"

namespace ftc {

// The module as MLIR's text, which parses again. Its attributes stand one in a line.
std::string ModuleText(mlir::ModuleOp module);

// The ops that are asked for, in order, under the function that they stand in, with the names of values that
// ModuleText has. An op is of layer "model.layers.3.mlp" if the glob matches that name or some of its words,
// as "layers.3" does. Errors: InvalidArgument when there is none, with the functions that there are.
absl::StatusOr<std::string> OpsText(mlir::ModuleOp module, const DumpRequest& request);

}  // namespace ftc
