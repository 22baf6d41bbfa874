// Puts adapters beside the weights of products.
//
// Enters: a model that was checked. Leaves: see passes.td. Refused: targets that mean nothing, or what cannot
// have adapters.
#include "compiler/adapters/passes.h"

#include "compiler/adapters/adapted_weights.h"
#include "dialects/ft/elementwise.h"
#include "dialects/ft/lora.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/lora_names.h"

namespace ft::compiler {

#define GEN_PASS_DEF_INSERTLORAPASS
#include "compiler/adapters/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::GetOp;
using mlir::ft::InitAttr;
using mlir::ft::InitKind;
using mlir::ft::InputOp;
using mlir::ft::MatmulOp;
using mlir::ft::ParameterOp;

/// The last of the parameters: behind it others keep their numbers, and so what they draw.
Operation *lastParameter(ModuleOp module) {
  Operation *last = nullptr;
  for (ParameterOp parameter : module.getOps<ParameterOp>())
    last = parameter;
  return last;
}

/// A stream of random numbers that nothing in the function has yet.
int64_t freeStream(func::FuncOp function) {
  int64_t stream = 0;
  function.walk([&](mlir::ft::RandomOpInterface op) {
    for (int64_t drawn : op.getDrawnStreams())
      stream = std::max(stream, drawn + 1);
  });
  return stream;
}

class LoraInserter {
public:
  LoraInserter(func::FuncOp forward, const mlir::ft::Lora &lora)
      : forward(forward), builder(forward.getContext()), lora(lora), stream(freeStream(forward)) {}

  LogicalResult insert(const AdaptedWeight &weight) {
    InitAttr even = InitAttr::get(builder.getContext(), InitKind::uniform, 1 / std::sqrt(double(weight.in)));
    InitAttr zero = InitAttr::get(builder.getContext(), InitKind::constant, 0);
    auto a = addParameter(weight, ::ft::kLoraA, {lora.rank, weight.in}, even);
    auto b = addParameter(weight, ::ft::kLoraB, {weight.out, lora.rank}, zero);
    if (failed(a) || failed(b))
      return failure();
    for (MatmulOp product : weight.products)
      insertBehind(product, *a, *b);
    return success();
  }

private:
  FailureOr<ParameterOp> addParameter(const AdaptedWeight &weight, StringRef suffix, ArrayRef<int64_t> shape,
                                      InitAttr init) {
    auto module = forward->getParentOfType<ModuleOp>();
    std::string name = weight.module + suffix.str();
    if (module.lookupSymbol(name))
      return module.emitError() << "lora: the model has a parameter @" << name << " already";
    builder.setInsertionPointAfter(lastParameter(module));
    ParameterOp base = weight.parameter;
    auto parameter =
        ParameterOp::create(builder, base.getLoc(), builder.getStringAttr(name),
                            TypeAttr::get(RankedTensorType::get(shape, builder.getF32Type())), init,
                            base.getLayerAttr(), /*no_decay=*/UnitAttr(), /*frozen=*/UnitAttr(),
                            /*aliases=*/ArrayAttr(), /*stored_as=*/StringAttr(), /*rule=*/StringAttr(),
                            /*unit=*/FlatSymbolRefAttr(), /*offset=*/IntegerAttr());
    return parameter;
  }

  template <typename Op, typename... Args> Op create(MatmulOp product, Args... args) {
    auto op = Op::create(builder, product.getLoc(), args...);
    mlir::ft::setLayer(op, mlir::ft::getLayer(product));
    return op;
  }

  Value read(MatmulOp product, ParameterOp parameter) {
    return create<GetOp>(product, parameter.getType(), FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
  }

  /// x y^T of the last extents.
  Value multiply(MatmulOp product, Value x, Value y) {
    auto type = cast<RankedTensorType>(x.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape.back() = cast<RankedTensorType>(y.getType()).getDimSize(0);
    return create<MatmulOp>(product, type.clone(shape), x, y, /*bias=*/Value(), /*acc=*/Value(),
                            /*transpose_a=*/false, /*transpose_b=*/true);
  }

  Value dropped(MatmulOp product) {
    Value x = product.getA();
    if (lora.dropout == 0)
      return x;
    return create<mlir::ft::DropoutOp>(product, x.getType(), x, randomState(product),
                                       builder.getF64FloatAttr(lora.dropout),
                                       builder.getI64IntegerAttr(stream++));
  }

  /// One for all, in front of all.
  Value randomState(MatmulOp product) {
    if (rng)
      return rng;
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&forward.getBody().front());
    auto state =
        create<InputOp>(product, RankedTensorType::get({3}, builder.getI64Type()), mlir::ft::kRngInput);
    for (InputOp other : llvm::make_early_inc_range(forward.getOps<InputOp>())) {
      if (other == state || other.getName() != mlir::ft::kRngInput)
        continue;
      other.replaceAllUsesWith(state.getValue());
      other.erase();
    }
    return rng = state;
  }

  void insertBehind(MatmulOp product, ParameterOp a, ParameterOp b) {
    builder.setInsertionPointAfter(product);
    Value x = dropped(product);
    Value low = multiply(product, x, read(product, a));
    double factor = lora.alpha / (lora.rslora ? std::sqrt(double(lora.rank)) : double(lora.rank));
    if (factor != 1)
      low = create<mlir::ft::ScaleOp>(product, ValueRange{low}, factor);
    Value delta = multiply(product, low, read(product, b));
    auto sum = create<mlir::ft::AddOp>(product, ValueRange{product.getResult(), delta});
    product.getResult().replaceAllUsesExcept(sum->getResult(0), sum);
  }

  func::FuncOp forward;
  OpBuilder builder;
  const mlir::ft::Lora &lora;
  int64_t stream;
  Value rng;
};

struct InsertLoraPass : impl::InsertLoraPassBase<InsertLoraPass> {
  using InsertLoraPassBase::InsertLoraPassBase;

  /// Freezes all but parameters of the modules that are trained whole, of which none may be missing.
  LogicalResult freezeOthers(llvm::SetVector<StringRef> &saved) {
    SmallVector<bool> used(loraSave.size());
    for (ParameterOp parameter : getOperation().getOps<ParameterOp>()) {
      bool isSaved = false;
      StringRef module = moduleOf(parameter.getSymName());
      for (auto [i, pattern] : llvm::enumerate(loraSave)) {
        if (!meansModuleAround(pattern, module))
          continue;
        isSaved = used[i] = true;
      }
      if (!isSaved) {
        parameter.setFrozen(true);
        continue;
      }
      StringRef why = parameter.getAliases()    ? "it is tied"
                      : parameter.getStoredAs() ? "files have it in parts"
                      : parameter.getFrozen()   ? "it is frozen"
                                                : "";
      if (!why.empty())
        return parameter.emitError() << "lora: " << parameter.getSymName()
                                     << " cannot be trained whole: " << why;
      saved.insert(module);
    }
    for (auto [i, pattern] : llvm::enumerate(loraSave))
      if (!used[i])
        return getOperation().emitError()
               << "lora: no module matches '" << pattern << "', which is to be saved";
    return success();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto forward = module.lookupSymbol<func::FuncOp>(mlir::ft::kForwardFunction);
    if (!forward || loraRank <= 0)
      return;
    mlir::ft::Lora lora{loraRank, loraAlpha, loraDropout, loraRslora, false, {}, {}};
    auto weights =
        findAdaptedWeights(forward, SmallVector<std::string>(loraTargets.begin(), loraTargets.end()));
    llvm::SetVector<StringRef> saved;
    if (failed(weights) || failed(freezeOthers(saved)))
      return signalPassFailure();
    LoraInserter inserter(forward, lora);
    for (const AdaptedWeight &weight : *weights) {
      if (saved.contains(weight.module)) {
        module.emitError() << "lora: " << weight.module << " has adapters and is trained whole; choose one";
        return signalPassFailure();
      }
      if (failed(inserter.insert(weight)))
        return signalPassFailure();
      lora.modules.push_back(weight.module);
    }
    lora.inputFirst =
        llvm::none_of(*weights, [](const AdaptedWeight &weight) { return weight.isOutputFirst; });
    for (StringRef name : saved)
      lora.saved.push_back(name.str());
    mlir::ft::setLora(module, lora);
  }
};

} // namespace
} // namespace ft::compiler
