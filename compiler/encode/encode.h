// A module of ftx in the terms of plan.proto.
#pragma once

#include "compiler/encode/numbering.h"
#include "runtime/plan/plan.pb.h"

namespace ft::compiler {

/// std::nullopt when plan.proto has no such type.
std::optional<proto::DType> dtypeOf(mlir::Type elementType);

/// Units and buffers, in the order of `numbers`, and all that sizes depend on. Live ranges are left out where
/// there are none yet. As below, an error is emitted at an op that has no counterpart.
llvm::LogicalResult encodeTables(mlir::ModuleOp module, const Numbering &numbers, proto::Plan &plan);

/// Instructions and ports of a program, as they stand.
llvm::LogicalResult encodeProgram(mlir::ftx::ProgramOp program, const Numbering &numbers,
                                  proto::Program &out);

} // namespace ft::compiler
