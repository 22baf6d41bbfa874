// Numbers that ops of a function keep until they are instructions.
//
// They stand in the locations of ops, which all stages hand on: what a stage makes of several ops has their
// fused location, and with it all of their numbers; what it makes several of has one number more than once. A
// plan has no locations: numbers cost it nothing.
#pragma once

#include "dialects/ftx/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <vector>

namespace ft::compiler {

/// Gives each op of the function's block its place there. Not ft.pack, whose padding is zeroed where the
/// first of what it packs is made.
void numberOps(mlir::func::FuncOp function);

/// Of each instruction of a program, in order, the numbers of the ops that it computes, ascending. None of
/// what was only inserted for an op: transfers, kernels of no layer (sums of losses), and those that prepare
/// a gathered copy.
std::vector<std::vector<unsigned>> numbersOfInstructions(mlir::ftx::ProgramOp program);

} // namespace ft::compiler
