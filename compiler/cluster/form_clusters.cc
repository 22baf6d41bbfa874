// --ft-form-clusters
// Enters: programs whose element types are final, without composites. Leaves: ft.cluster in the place of ops
// that can run as one kernel, and their bodies. Refused: an elementwise op, a conversion or a reduction that
// no body can have.
#include "compiler/cluster/groups.h"
#include "compiler/cluster/moves.h"
#include "compiler/cluster/passes.h"
#include "compiler/codegen/ptx_kernel.h"
#include "dialects/ft/composites.h"
#include "dialects/ft/elementwise.h"
#include "runtime/plan/plan_clusters.h"

#include <map>

namespace ft::compiler {

#define GEN_PASS_DEF_FORMCLUSTERSPASS
#include "compiler/cluster/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::ClusterOp;

class ClusterMaker {
public:
  ClusterMaker(ModuleOp module, BodyFunctions &bodies)
      : symbols(module), end(OpBuilder::atBlockEnd(module.getBody())), bodies(bodies) {}

  void make(const PlacedGroup &placed) {
    OpGroup group(placed.ops);
    const BodyFunction &body = *bodies.of(group);
    OpBuilder builder(placed.place);
    auto locations = llvm::map_to_vector(group.ops, [](Operation *op) { return op->getLoc(); });
    SmallVector<int64_t> inPlace = placesOf(body.body, group);
    const Inserted &inserted = insert(body);
    DenseI64ArrayAttr streams =
        body.streams.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(body.streams);
    auto types = llvm::map_to_vector(group.results, [](Value value) { return value.getType(); });
    auto cluster = ClusterOp::create(
        builder, builder.getFusedLoc(locations), types, inserted.function, group.inputs.getArrayRef(),
        builder.getDenseI64ArrayAttr(inserted.partialBytes), builder.getDenseI64ArrayAttr(inPlace), streams);
    mlir::ft::setLayer(cluster, mlir::ft::getLayer(placed.place));
    mlir::ft::setPhase(cluster, mlir::ft::getPhase(placed.place).getValue());
    for (auto [from, to] : llvm::zip_equal(group.results, cluster.getOutputs()))
      from.replaceAllUsesWith(to);
    for (Operation *op : llvm::reverse(group.ops))
      op->erase();
  }

private:
  // Of each kind of device, whether it runs code or walks the body.
  static SmallVector<int64_t> partialBytesOf(const BodyFunction &made) {
    int64_t walked = made.body.PartialBytes();
    int64_t onGpu = made.body.PartialOffsets(ptxInterfaceOf(made.body).partialBytes).back();
    return {walked, std::max(walked, onGpu)};
  }

  // For each result an operand of its own, or -1.
  static SmallVector<int64_t> placesOf(const ClusterBody &body, const OpGroup &group) {
    SmallVector<int64_t> places;
    for (auto [r, result] : llvm::enumerate(group.results)) {
      int64_t place = -1;
      for (auto [i, input] : llvm::enumerate(group.inputs))
        if (place < 0 && MayTakePlaceOf(body, i, r) && !llvm::is_contained(places, int64_t(i)) &&
            input.getType() == result.getType())
          place = i;
      places.push_back(place);
    }
    return places;
  }

  struct Inserted {
    FlatSymbolRefAttr function;
    SmallVector<int64_t> partialBytes;
  };

  const Inserted &insert(const BodyFunction &body) {
    Inserted &inserted = insertions[&body];
    if (!inserted.function)
      inserted = {functionOf(body), partialBytesOf(body)};
    return inserted;
  }

  // One for all bodies that are alike and have the same types.
  FlatSymbolRefAttr functionOf(const BodyFunction &made) {
    func::FuncOp own = *made.function;
    auto key = std::pair(own.getFunctionType().getAsOpaquePointer(), ToProto(made.body).SerializeAsString());
    func::FuncOp &function = functions[key];
    if (!function) {
      function = own.clone();
      symbols.insert(function, end.getInsertionPoint()); // with a number behind its name
    }
    return FlatSymbolRefAttr::get(function.getSymNameAttr());
  }

  SymbolTable symbols;
  OpBuilder end;
  BodyFunctions &bodies;
  std::map<const BodyFunction *, Inserted> insertions;
  std::map<std::pair<const void *, std::string>, func::FuncOp> functions;
};

// Reductions of dimensions that are not beside each other become two, the first of what lies last. Sums are
// in f32 until they are whole.
void splitReductions(Block &block) {
  SmallVector<mlir::ft::ReduceOp> reductions(block.getOps<mlir::ft::ReduceOp>());
  while (!reductions.empty()) {
    mlir::ft::ReduceOp op = reductions.pop_back_val();
    ArrayRef<int64_t> dims = op.getDims();
    size_t first = dims.empty() ? 0 : dims.size() - 1; // of the last run
    while (first > 0 && dims[first - 1] + 1 == dims[first])
      --first;
    if (first == 0)
      continue;
    OpBuilder builder(op);
    auto from = cast<RankedTensorType>(op.getX().getType());
    SmallVector<int64_t> shape(from.getShape());
    shape.erase(shape.begin() + dims[first], shape.begin() + dims.back() + 1);
    Type element = from.getElementType();
    if (isa<FloatType>(element) && op.getKind() == "sum")
      element = builder.getF32Type();
    auto last =
        mlir::ft::ReduceOp::create(builder, op.getLoc(), RankedTensorType::get(shape, element), op.getX(),
                                   op.getKindAttr(), builder.getDenseI64ArrayAttr(dims.drop_front(first)));
    last->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    auto rest = mlir::ft::ReduceOp::create(builder, op.getLoc(), op.getType(), last, op.getKindAttr(),
                                           builder.getDenseI64ArrayAttr(dims.take_front(first)));
    rest->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    op.replaceAllUsesWith(rest.getResult());
    op.erase();
    reductions.push_back(rest);
  }
}

// No cluster, so its ops go where the group would have been: what they read may have gone there, too.
void putInPlace(const PlacedGroup &group) {
  Operation *last = group.place;
  for (Operation *op : group.ops)
    if (op->isBeforeInBlock(group.place)) {
      op->moveBefore(group.place);
    } else if (last->isBeforeInBlock(op)) {
      op->moveAfter(last);
      last = op;
    }
}

// Derivatives have been made: who reads what stops them reads its operand, and a choice between two that are
// one since then is that one. A parameter is read where it is gathered.
void eraseStops(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    Value x;
    if (isa<mlir::ft::StopGradientOp>(op) && !op.getOperand(0).getDefiningOp<mlir::ft::ViewOp>())
      x = op.getOperand(0);
    if (isa<mlir::ft::SelectOp>(op) && op.getOperand(1) == op.getOperand(2))
      x = op.getOperand(1);
    if (!x || x.getType() != op.getResult(0).getType())
      continue;
    op.getResult(0).replaceAllUsesWith(x);
    op.erase();
  }
}

// Constants whose readers have them in their bodies, and what nobody reads: that is no body of a cluster.
void eraseUnread(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if ((isa<mlir::ft::FillOp, mlir::ft::IotaOp>(op) || mayBeMember(&op)) && op.use_empty())
      op.erase();
}

struct FormClustersPass : impl::FormClustersPassBase<FormClustersPass> {
  using FormClustersPassBase::FormClustersPassBase;

  void runOnOperation() override {
    BodyFunctions bodies;
    ClusterMaker maker(getOperation(), bodies);
    for (func::FuncOp program : llvm::to_vector(mlir::ft::programsOf(getOperation()))) {
      Block &block = program.getBody().front();
      eraseStops(block);
      splitReductions(block);
      simplifyMoves(block);
      eraseUnread(block);
      repeatForEachReader(block);
      SmallVector<PlacedGroup> groups = formGroups(block, clusterOps, bodies);
      readReshaped(groups);
      for (const PlacedGroup &group : groups)
        if (group.computes)
          maker.make(group);
        else
          putInPlace(group);
      eraseUnread(block);
      for (Operation &op : block)
        if (mayBeMember(&op) && isComputed(&op)) {
          op.emitError() << "cannot run: " << refusalOf(OpGroup(&op));
          return signalPassFailure();
        }
    }
  }
};

} // namespace
} // namespace ft::compiler
