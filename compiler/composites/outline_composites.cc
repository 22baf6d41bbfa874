// --ft-outline-composites
// Enters: a model. Leaves: it without ops of ShorthandOpInterface and CompositeOpInterface. Nothing is
// refused.
#include "compiler/composites/passes.h"

#include "compiler/composites/number_draws.h"
#include "dialects/ft/composites.h"

#include <map>
#include <tuple>

namespace ft::compiler {

#define GEN_PASS_DEF_OUTLINECOMPOSITESPASS
#include "compiler/composites/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::CallOp;
using mlir::ft::CompositeOpInterface;
using mlir::ft::ShorthandOpInterface;

/// f32 for other floats.
Type widened(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return isa<FloatType>(tensor.getElementType()) ? tensor.clone(Float32Type::get(type.getContext())) : tensor;
}

class Outliner {
public:
  explicit Outliner(ModuleOp module) : symbols(module), end(OpBuilder::atBlockEnd(module.getBody())) {}

  void run(CompositeOpInterface op) {
    OpBuilder builder(op);
    auto draws = dyn_cast<mlir::ft::RandomOpInterface>(op.getOperation());
    SmallVector<int64_t> streams = draws ? draws.getDrawnStreams() : SmallVector<int64_t>();
    if (draws) // names in the body
      draws.setDrawnStreams(llvm::to_vector(llvm::seq<int64_t>(0, streams.size())));
    auto name = FlatSymbolRefAttr::get(functionOf(op).getSymNameAttr());
    auto call = CallOp::create(builder, op->getLoc(), op->getResultTypes(), name, op->getOperands(),
                               DenseI64ArrayAttr(), DenseI64ArrayAttr());
    call.setDrawnStreams(streams);
    call->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    op->replaceAllUsesWith(call.getOutputs());
    op->erase();
  }

private:
  // What makes one composite another: its name, its attributes but discardable ones, its types.
  using Key = std::tuple<const void *, const void *, const void *>;

  func::FuncOp functionOf(CompositeOpInterface op) {
    auto type = FunctionType::get(op->getContext(), llvm::map_to_vector(op->getOperandTypes(), widened),
                                  llvm::map_to_vector(op->getResultTypes(), widened));
    Attribute properties = op->getPropertiesAsAttribute();
    func::FuncOp &function = functions[{op->getName().getAsOpaquePointer(), properties.getAsOpaquePointer(),
                                        type.getAsOpaquePointer()}];
    if (!function)
      function = makeFunction(op, type);
    return function;
  }

  static mlir::ft::OriginAttr originOf(CompositeOpInterface op) {
    auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
    return mlir::ft::OriginAttr::get(op->getContext(), mlir::ft::OriginKind::body,
                                     op->getName().getIdentifier(),
                                     properties ? properties : DictionaryAttr::get(op->getContext()));
  }

  func::FuncOp makeFunction(CompositeOpInterface op, FunctionType type) {
    auto function = func::FuncOp::create(op->getLoc(), op->getName().stripDialect(), type);
    function.setPrivate();
    function->setAttr(mlir::ft::kCompositeAttr, UnitAttr::get(op->getContext()));
    function->setAttr(mlir::ft::kOriginAttr, originOf(op));
    Block *block = function.addEntryBlock();
    OpBuilder builder = OpBuilder::atBlockEnd(block);
    func::ReturnOp::create(builder, op->getLoc(), op.buildBody(builder, block->getArguments()));
    symbols.insert(function, end.getInsertionPoint()); // with another name, where it is taken
    return function;
  }

  SymbolTable symbols;
  OpBuilder end;
  std::map<Key, func::FuncOp> functions;
};

/// Ops that are short for others become these, of their layer.
void writeOut(ModuleOp module) {
  SmallVector<ShorthandOpInterface> ops;
  module.walk([&](ShorthandOpInterface op) { ops.push_back(op); });
  for (ShorthandOpInterface op : ops) {
    OpBuilder builder(op);
    SmallVector<Value> values = op.expand(builder);
    for (Value value : values)
      value.getDefiningOp()->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    op->replaceAllUsesWith(values);
    op->erase();
  }
}

/// What a composite returns as it is given is no result of its own: who reads the result reads the operand.
void readOperands(ModuleOp module) {
  bool changes = true;
  while (changes) { // a body returns what an inner call returns
    changes = false;
    module.walk([&](CallOp call) {
      auto returned = mlir::ft::calleeOf(call).getBody().front().getTerminator();
      for (auto [output, value] : llvm::zip_equal(call.getOutputs(), returned->getOperands())) {
        auto argument = dyn_cast<BlockArgument>(value);
        if (!argument || output.use_empty())
          continue;
        output.replaceAllUsesWith(call.getInputs()[argument.getArgNumber()]);
        changes = true;
      }
    });
  }
}

struct OutlineCompositesPass : impl::OutlineCompositesPassBase<OutlineCompositesPass> {
  void runOnOperation() override {
    writeOut(getOperation());
    SmallVector<CompositeOpInterface> ops;
    getOperation().walk([&](CompositeOpInterface op) { ops.push_back(op); });
    Outliner outliner(getOperation());
    for (CompositeOpInterface op : ops)
      outliner.run(op);
    readOperands(getOperation());
    numberDraws(getOperation());
  }
};

} // namespace
} // namespace ft::compiler
