// Numbers of units, parameters, clusters and buffers in a plan: their order in the module.
#pragma once

#include "dialects/ft/clusters.h"
#include "dialects/ftx/views.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <optional>

namespace ft::compiler {

class Numbering {
public:
  explicit Numbering(mlir::ModuleOp module) {
    for (auto unit : module.getOps<mlir::ft::UnitOp>())
      units.insert({unit.getSymName(), units.size()});
    for (auto parameter : module.getOps<mlir::ft::ParameterOp>())
      parameters.insert({parameter.getSymName(), parameters.size()});
    // Persistent ones first.
    for (auto buffer : module.getOps<mlir::ftx::BufferOp>())
      buffers.insert({buffer.getBuffer(), buffers.size()});
    for (auto program : module.getOps<mlir::ftx::ProgramOp>())
      for (auto buffer : program.getOps<mlir::ftx::BufferOp>())
        buffers.insert({buffer.getBuffer(), buffers.size()});
  }

  std::optional<uint32_t> unit(llvm::StringRef name) const { return find(units, name); }
  std::optional<uint32_t> parameter(llvm::StringRef name) const { return find(parameters, name); }
  /// 0 before it is known which clusters have the same body.
  uint32_t clusterPlusOne(llvm::StringRef name) const { return clusters.lookup(name); }
  void setCluster(llvm::StringRef name, uint32_t number) { clusters[name] = number + 1; }
  uint32_t buffer(mlir::Value value) const { return buffers.at(value); }

private:
  static std::optional<uint32_t> find(const llvm::StringMap<uint32_t> &numbers, llvm::StringRef name) {
    auto it = numbers.find(name);
    return it == numbers.end() ? std::nullopt : std::optional<uint32_t>(it->second);
  }

  llvm::StringMap<uint32_t> clusters; // plus one
  llvm::StringMap<uint32_t> units, parameters;
  llvm::DenseMap<mlir::Value, uint32_t> buffers;
};

} // namespace ft::compiler
