// --ft-form-clusters
// Enters: programs whose element types are final, without composites. Leaves: ft.cluster in the place of ops
// that can run as one kernel, and their bodies. Nothing is refused.
#include "compiler/cluster/groups.h"
#include "compiler/cluster/passes.h"
#include "compiler/codegen/ptx_kernel.h"
#include "dialects/ft/composites.h"
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
    auto types = llvm::map_to_vector(group.results, [](Value value) { return value.getType(); });
    auto cluster = ClusterOp::create(
        builder, builder.getFusedLoc(locations), types, inserted.function, group.inputs.getArrayRef(),
        builder.getDenseI64ArrayAttr(inserted.partialBytes), builder.getDenseI64ArrayAttr(inPlace));
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
    if (walked == 0)
      return {0, 0};
    FailureOr<PtxInterface> interface = ptxInterfaceOf(func::FuncOp(*made.function));
    assert(succeeded(interface) && "a body is a body for GPUs too");
    return {walked, std::max(walked, made.body.PartialOffsets(interface->partialBytes.front()).back())};
  }

  // For each result an operand of its own, or -1.
  static SmallVector<int64_t> placesOf(const ClusterBody &body, const OpGroup &group) {
    SmallVector<int64_t> places;
    for (auto [output, result] : llvm::zip_equal(body.outputs, group.results)) {
      int64_t place = -1;
      for (auto [i, input] : llvm::enumerate(body.inputs))
        if (place < 0 && MayTakePlaceOf(body, input, output) && !llvm::is_contained(places, int64_t(i)) &&
            group.inputs[i].getType() == result.getType())
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

// Whether a parameter that `op` reads is given up before `reader`.
bool isGivenUp(Operation *op, Operation *reader) {
  auto view = op->getOperand(0).getDefiningOp<mlir::ft::ViewOp>();
  return view && llvm::any_of(view.getFlat().getUsers(), [&](Operation *user) {
           return !isMemoryEffectFree(user) && op->isBeforeInBlock(user) && user->isBeforeInBlock(reader);
         });
}

// A cluster repeats an element in a register: whoever reads what was repeated repeats it anew, so that it
// need not be kept.
void repeatForEachReader(Block &block) {
  for (auto broadcast : llvm::make_early_inc_range(block.getOps<mlir::ft::BroadcastOp>())) {
    SmallVector<Operation *> readers(broadcast->user_begin(), broadcast->user_end());
    if (readers.size() < 2)
      continue;
    for (Operation *reader : llvm::SetVector<Operation *>(readers.begin(), readers.end()))
      if (mayBeMember(reader) && !isGivenUp(broadcast, reader)) {
        OpBuilder builder(reader);
        auto own = cast<mlir::ft::BroadcastOp>(builder.clone(*broadcast));
        mlir::ft::setLayer(own, mlir::ft::getLayer(reader));
        mlir::ft::setPhase(own, mlir::ft::getPhase(reader).getValue());
        reader->replaceUsesOfWith(broadcast, own);
      }
    if (broadcast.use_empty())
      broadcast.erase();
  }
}

// Constants whose readers have them in their bodies.
void eraseDeadFills(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isa<mlir::ft::FillOp>(op) && op.use_empty())
      op.erase();
}

struct FormClustersPass : impl::FormClustersPassBase<FormClustersPass> {
  using FormClustersPassBase::FormClustersPassBase;

  void runOnOperation() override {
    BodyFunctions bodies;
    ClusterMaker maker(getOperation(), bodies);
    for (func::FuncOp program : llvm::to_vector(mlir::ft::programsOf(getOperation()))) {
      Block &block = program.getBody().front();
      repeatForEachReader(block);
      for (const PlacedGroup &group : formGroups(block, clusterOps, bodies))
        maker.make(group);
      eraseDeadFills(block);
    }
  }
};

} // namespace
} // namespace ft::compiler
