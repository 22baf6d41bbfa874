#include "compiler/composites/number_draws.h"

#include "dialects/ft/composites.h"

#include <map>

namespace ft::compiler {
namespace {

using namespace mlir;
using mlir::ft::CallOp;
using mlir::ft::RandomOpInterface;

class Numbering {
public:
  void ofProgram(func::FuncOp program) {
    int64_t next = 1;
    for (auto op : program.getOps<RandomOpInterface>())
      for (int64_t stream : op.getDrawnStreams())
        next = std::max(next, stream + 1);
    for (auto call : program.getOps<CallOp>())
      if (call.getDrawnStreams().empty())
        number(call, next);
  }

private:
  // How many streams the composite has.
  int64_t ofComposite(func::FuncOp composite) {
    auto [entry, isNew] = draws.try_emplace(composite, 0);
    if (!isNew)
      return entry->second;
    int64_t next = 0;
    std::map<int64_t, int64_t> known;
    for (auto op : composite.getOps<RandomOpInterface>()) {
      SmallVector<int64_t> streams = op.getDrawnStreams();
      if (auto call = dyn_cast<CallOp>(op.getOperation()); call && streams.empty()) {
        number(call, next);
        continue;
      }
      for (int64_t &stream : streams) {
        auto [name, first] = known.try_emplace(stream, next);
        next += first;
        stream = name->second;
      }
      op.setDrawnStreams(streams);
    }
    return draws[composite] = next;
  }

  void number(CallOp call, int64_t &next) {
    int64_t count = ofComposite(mlir::ft::calleeOf(call));
    call.setDrawnStreams(llvm::to_vector(llvm::seq<int64_t>(next, next + count)));
    next += count;
  }

  llvm::DenseMap<Operation *, int64_t> draws;
};

} // namespace

void numberDraws(ModuleOp module) {
  Numbering numbering;
  for (func::FuncOp program : mlir::ft::programsOf(module))
    numbering.ofProgram(program);
}

} // namespace ft::compiler
