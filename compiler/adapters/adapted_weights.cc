#include "compiler/adapters/adapted_weights.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

#include "runtime/base/glob.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ft::GetOp;
using mlir::ft::MatmulOp;
using mlir::ft::ParameterOp;

namespace {

constexpr StringLiteral kAllLinear = "all-linear";
constexpr StringLiteral kWeight = ".weight";

/// A parameter, and why it cannot have adapters where that is so.
struct Candidate {
  AdaptedWeight weight;
  std::string refusal;
};

/// Whether another product comes between this one and what the function returns, and nothing is sorted before
/// it, as a router sorts experts: it is then one of the linear layers inside, as PEFT understands them.
bool isInside(MatmulOp product) {
  llvm::SetVector<Operation *> reached;
  reached.insert(product);
  bool isFollowed = false;
  for (size_t i = 0; i < reached.size(); ++i)
    for (Operation *user : reached[i]->getUsers()) {
      if (isa<mlir::ft::ArgsortOp>(user))
        return false;
      if (isa<MatmulOp, mlir::ft::AttentionOp, mlir::ft::QkvAttentionOp>(user))
        isFollowed = true;
      else
        reached.insert(user);
    }
  return isFollowed;
}

/// Fills in products and sizes, or says why that is not possible.
std::string findProducts(ArrayRef<GetOp> reads, AdaptedWeight &weight) {
  auto type = cast<RankedTensorType>(weight.parameter.getType());
  if (type.getRank() != 2)
    return "it has " + std::to_string(type.getRank()) + " dimensions, adapters are of two";
  for (GetOp read : reads)
    for (OpOperand &use : read.getValue().getUses()) {
      auto product = dyn_cast<MatmulOp>(use.getOwner());
      if (!product || use.getOperandNumber() != 1 || product.getTransposeA() || product.getAcc())
        return "it is read by " + use.getOwner()->getName().getStringRef().str() +
               ", adapters are of weights that ft.matmul multiplies with";
      if (!weight.products.empty() && product.getTransposeB() != weight.isOutputFirst)
        return "it is multiplied with both ways round";
      weight.isOutputFirst = product.getTransposeB();
      weight.isInside &= isInside(product);
      weight.products.push_back(product);
    }
  if (weight.products.empty())
    return "nothing reads it";
  weight.in = type.getDimSize(weight.isOutputFirst ? 1 : 0);
  weight.out = type.getDimSize(weight.isOutputFirst ? 0 : 1);
  return "";
}

std::string refuse(ArrayRef<GetOp> reads, AdaptedWeight &weight) {
  ParameterOp parameter = weight.parameter;
  if (!parameter.getSymName().ends_with(kWeight))
    return "it is not the weight of a module";
  if (parameter.getAliases())
    return "it is tied to " + cast<StringAttr>((*parameter.getAliases())[0]).getValue().str();
  if (parameter.getStoredAs())
    return "files have it as " + parameter.getStoredAs()->str();
  return findProducts(reads, weight);
}

std::vector<Candidate> candidatesOf(func::FuncOp forward) {
  llvm::StringMap<SmallVector<GetOp>> reads;
  for (GetOp read : forward.getOps<GetOp>())
    reads[read.getParameter()].push_back(read);
  std::vector<Candidate> candidates;
  for (ParameterOp parameter : forward->getParentOfType<ModuleOp>().getOps<ParameterOp>()) {
    Candidate &candidate = candidates.emplace_back();
    candidate.weight.parameter = parameter;
    candidate.weight.module = moduleOf(parameter.getSymName()).str();
    candidate.refusal = refuse(reads.lookup(parameter.getSymName()), candidate.weight);
  }
  return candidates;
}

/// The last parts of the names of modules that can have adapters: what a user may have meant.
std::string choices(ArrayRef<Candidate> candidates) {
  llvm::SetVector<StringRef> names;
  for (const Candidate &candidate : candidates)
    if (candidate.refusal.empty())
      names.insert(StringRef(candidate.weight.module).substr(candidate.weight.module.rfind('.') + 1));
  return names.empty() ? "none" : llvm::join(names, ", ");
}

LogicalResult refuseTarget(func::FuncOp forward, StringRef target, Candidate *refused,
                           ArrayRef<Candidate> candidates) {
  InFlightDiagnostic error = forward->getParentOfType<ModuleOp>().emitError();
  if (refused)
    error << "lora: " << refused->weight.parameter.getSymName() << ", which '" << target
          << "' means, cannot have adapters: " << refused->refusal;
  else
    error << "lora: no module matches '" << target << "'";
  return error << "; weights that can have adapters: " << choices(candidates);
}

} // namespace

StringRef moduleOf(StringRef parameter) { return parameter.substr(0, parameter.rfind('.')); }

bool meansModule(StringRef target, StringRef module) {
  for (StringRef name = module;;) {
    if (::ft::MatchesGlob({target.data(), target.size()}, {name.data(), name.size()}))
      return true;
    size_t point = name.find('.');
    if (point == StringRef::npos)
      return false;
    name = name.substr(point + 1);
  }
}

bool meansModuleAround(StringRef target, StringRef module) {
  for (; !module.empty(); module = module.contains('.') ? moduleOf(module) : "")
    if (meansModule(target, module))
      return true;
  return false;
}

FailureOr<std::vector<AdaptedWeight>> findAdaptedWeights(func::FuncOp forward,
                                                         ArrayRef<std::string> targets) {
  std::vector<Candidate> candidates = candidatesOf(forward);
  llvm::DenseSet<Operation *> chosen;
  for (StringRef target : targets) {
    Candidate *refused = nullptr;
    size_t before = chosen.size(), again = 0;
    for (Candidate &candidate : candidates) {
      AdaptedWeight &weight = candidate.weight;
      ParameterOp parameter = weight.parameter;
      bool isMeant = target == kAllLinear
                         ? candidate.refusal.empty() && weight.isInside
                         : meansModule(target, weight.module) || meansModule(target, parameter.getSymName());
      if (isMeant && candidate.refusal.empty())
        again += !chosen.insert(parameter).second;
      else if (isMeant && !refused)
        refused = &candidate;
    }
    if (chosen.size() == before && again == 0)
      return refuseTarget(forward, target, refused, candidates);
  }
  std::vector<AdaptedWeight> weights;
  for (Candidate &candidate : candidates)
    if (chosen.contains(candidate.weight.parameter))
      weights.push_back(std::move(candidate.weight));
  return weights;
}

} // namespace ft::compiler
