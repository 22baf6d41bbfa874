// --ft-expand-composites
// Enters: programs whose element types are final. Leaves: them without ft.call, products with clusters to
// come after them, and no composites. Nothing is refused.
#include "compiler/composites/passes.h"

#include "dialects/ft/composites.h"
#include "mlir/IR/IRMapping.h"

namespace ft::compiler {

#define GEN_PASS_DEF_EXPANDCOMPOSITESPASS
#include "compiler/composites/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::CallOp;
using mlir::ft::CopyOp;

class Expansion {
public:
  explicit Expansion(CallOp call)
      : call(call), builder(call), attributes(call->getDiscardableAttrDictionary()) {
    attributes.erase(mlir::ft::kRematAttr); // which was said of the whole
  }

  /// Leaves the calls that its body has in `calls`.
  void run(SmallVectorImpl<CallOp> &calls) {
    Block &body = mlir::ft::calleeOf(call).getBody().front();
    IRMapping values;
    for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), call.getInputs()))
      values.map(argument, argument.use_empty() ? operand : inType(argument.getType(), operand));
    for (Operation &op : body.without_terminator()) {
      Operation *clone = marked(builder.clone(op, values));
      if (auto draws = dyn_cast<mlir::ft::RandomOpInterface>(clone))
        draws.setDrawnStreams(llvm::map_to_vector(draws.getDrawnStreams(),
                                                  [&](int64_t name) { return (*call.getStreams())[name]; }));
      if (auto inner = dyn_cast<CallOp>(clone))
        calls.push_back(inner);
    }
    for (auto [output, value] : llvm::zip_equal(call.getOutputs(), body.getTerminator()->getOperands()))
      output.replaceAllUsesWith(rounded(output.getType(), value, values.lookup(value)));
    call.erase();
  }

private:
  Value inType(Type type, Value value) {
    if (value.getType() == type)
      return value;
    return marked(CopyOp::create(builder, call.getLoc(), type, value))->getResult(0);
  }

  /// A sum that nobody else reads is rounded to any type at once.
  Value rounded(Type type, Value original, Value value) {
    auto result = dyn_cast<OpResult>(value);
    if (result && isa<mlir::ft::ReduceOp>(result.getOwner()) && original.hasOneUse() &&
        mlir::ft::elementRole(result.getOwner(), 0) == mlir::ft::ElementRole::Rounded)
      result.setType(type);
    return inType(type, value);
  }

  /// It has the location, the layer and the phase of the call.
  Operation *marked(Operation *op) {
    if (op->getLoc() != call.getLoc())
      op->setLoc(isa<UnknownLoc>(op->getLoc()) ? call.getLoc()
                                               : Location(CallSiteLoc::get(op->getLoc(), call.getLoc())));
    for (NamedAttribute attr : attributes)
      op->setAttr(attr.getName(), attr.getValue());
    return op;
  }

  CallOp call;
  OpBuilder builder;
  NamedAttrList attributes;
};

void expandCalls(func::FuncOp function) {
  SmallVector<CallOp> calls(function.getOps<CallOp>());
  while (!calls.empty())
    Expansion(calls.pop_back_val()).run(calls);
}

/// Composites that come after a product, as clusters in the types that they have there.
class ThenClusters {
public:
  explicit ThenClusters(ModuleOp module) : symbols(module), end(OpBuilder::atBlockEnd(module.getBody())) {}

  void expand(mlir::ft::MatmulGeluOp op) {
    Type type = op.getResult().getType();
    op.setBody(clusterOf(op.getBody(), {type}, type));
  }
  void expand(mlir::ft::MatmulGeluGradOp op) {
    Type type = op.getDx().getType();
    op.setBody(clusterOf(op.getBody(), {type, type}, type));
  }

private:
  StringRef clusterOf(StringRef name, TypeRange inputs, Type output) {
    auto type = FunctionType::get(output.getContext(), inputs, output);
    func::FuncOp &cluster = clusters[{name, type}];
    if (!cluster)
      cluster = makeCluster(name, type);
    return cluster.getSymName();
  }

  func::FuncOp makeCluster(StringRef name, FunctionType type) {
    Location loc = UnknownLoc::get(type.getContext());
    auto function = func::FuncOp::create(loc, "cluster", type);
    function.setPrivate();
    function->setAttr(mlir::ft::kClusterAttr, UnitAttr::get(type.getContext()));
    Block *block = function.addEntryBlock();
    OpBuilder builder = OpBuilder::atBlockEnd(block);
    auto call = CallOp::create(builder, loc, type.getResults(), name, block->getArguments(),
                               DenseI64ArrayAttr(), DenseI64ArrayAttr());
    func::ReturnOp::create(builder, loc, call.getOutputs());
    symbols.insert(function, end.getInsertionPoint()); // with a number behind its name
    expandCalls(function);
    return function;
  }

  SymbolTable symbols;
  OpBuilder end;
  llvm::DenseMap<std::pair<StringRef, Type>, func::FuncOp> clusters;
};

struct ExpandCompositesPass : impl::ExpandCompositesPassBase<ExpandCompositesPass> {
  void runOnOperation() override {
    ThenClusters clusters(getOperation());
    for (func::FuncOp program : llvm::to_vector(mlir::ft::programsOf(getOperation()))) {
      for (auto op : program.getOps<mlir::ft::MatmulGeluOp>())
        clusters.expand(op);
      for (auto op : program.getOps<mlir::ft::MatmulGeluGradOp>())
        clusters.expand(op);
      expandCalls(program);
    }
    for (func::FuncOp composite : llvm::make_early_inc_range(mlir::ft::compositesOf(getOperation())))
      composite.erase();
  }
};

} // namespace
} // namespace ft::compiler
