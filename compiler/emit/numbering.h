// Numbers of units, clusters and buffers in a plan: their order in the module.
#pragma once

#include "dialects/ft/clusters.h"
#include "dialects/ftx/views.h"
#include "runtime/plan/plan.pb.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <optional>

namespace ft::compiler {

class Numbering {
public:
  explicit Numbering(mlir::ModuleOp module) {
    for (auto unit : module.getOps<mlir::ft::UnitOp>())
      units.insert({unit.getSymName(), units.size()});
    // Persistent ones first.
    for (auto buffer : module.getOps<mlir::ftx::BufferOp>())
      buffers.insert({buffer.getBuffer(), buffers.size()});
    for (auto program : module.getOps<mlir::ftx::ProgramOp>())
      for (auto buffer : program.getOps<mlir::ftx::BufferOp>())
        buffers.insert({buffer.getBuffer(), buffers.size()});
  }

  std::optional<uint32_t> unit(llvm::StringRef name) const {
    auto it = units.find(name);
    return it == units.end() ? std::nullopt : std::optional<uint32_t>(it->second);
  }
  uint32_t cluster(llvm::StringRef name) const { return clusters.at(name); }
  void setCluster(llvm::StringRef name, uint32_t number) { clusters[name] = number; }
  uint32_t buffer(mlir::Value value) const { return buffers.at(value); }

private:
  llvm::StringMap<uint32_t> clusters, units;
  llvm::DenseMap<mlir::Value, uint32_t> buffers;
};

/// std::nullopt when plan.proto has no such type.
std::optional<proto::DType> dtypeOf(mlir::Type elementType);

/// Bodies of clusters, each once, and their numbers.
llvm::LogicalResult emitClusters(mlir::ModuleOp module, Numbering &numbers, proto::Plan &plan);

/// Units, parameters, buffers.
llvm::LogicalResult emitTables(mlir::ModuleOp module, const Numbering &numbers, proto::Plan &plan);

/// Instructions and ports of a program.
llvm::LogicalResult emitProgram(mlir::ftx::ProgramOp program, const Numbering &numbers, proto::Program &out);

} // namespace ft::compiler
