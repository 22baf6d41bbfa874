#include "compiler/pipeline/check_facts.h"

#include <cmath>

#include "dialects/ft/composites.h"
#include "dialects/ft/elementwise.h"
#include "dialects/ft/facts.h"
#include "dialects/ft/signature.h"
#include "llvm/ADT/TypeSwitch.h"

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ft;
using ::ft::FactText;
using ::ft::FactValue;
using ::ft::ModelFacts;

namespace {

class FactChecker {
public:
  FactChecker(ModuleOp module, func::FuncOp forward, const ModelFacts &facts)
      : module(module), forward(forward), facts(facts) {}

  LogicalResult run() {
    return failure(failed(checkAll(forward)) || failed(checkVocabulary()) || failed(checkLayers()) ||
                   failed(checkHead()) || failed(checkActivation()));
  }

private:
  LogicalResult checkAll(func::FuncOp function) {
    for (Operation &op : function.getBody().front())
      if (failed(check(op)))
        return failure();
    return success();
  }

  template <typename T> LogicalResult expect(Operation *op, T ModelFacts::*member, T value) {
    if (facts.*member == value)
      return success();
    return op->emitError() << "'" << kFactsAttr << "' says that " << ::ft::FactOf(member).name << " is "
                           << FactText(facts.*member) << ", but here it is " << FactText(value)
                           << "; change one of them";
  }

  template <typename T> LogicalResult expectNone(Operation *op, T ModelFacts::*member) {
    return expect(op, member, ModelFacts().*member);
  }

  LogicalResult check(Operation &op) {
    return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
        .Case([&](EmbeddingOp embedding) { return checkEmbedding(embedding); })
        .Case([&](RopeOp rope) { return checkRope(rope); })
        .Case([&](LayerNormOp norm) { return checkNorm(norm, "layer_norm", norm.getEps()); })
        .Case([&](RmsNormOp norm) { return checkNorm(norm, kindOf(norm.getWeight()), norm.getEps()); })
        .Case([&](QkNormOp norm) {
          return failure(failed(checkNorm(norm, kindOf(norm.getWeight()), norm.getEps())) ||
                         failed(expect(norm, &ModelFacts::qk_norm, std::string("head"))));
        })
        .Case([&](AttentionOp attention) { return checkAttention(attention); })
        .Case([&](QkvAttentionOp attention) { return checkAttention(attention); })
        .Case([&](GeluOp gelu) {
          activations.push_back({gelu, gelu.getApproximate() == "tanh" ? "gelu_tanh" : "gelu"});
          return success();
        })
        .Case<SiluOp, ReluOp, SquaredReluOp>([&](Operation *op) {
          activations.push_back({op, isa<SiluOp>(op) ? "silu" : isa<ReluOp>(op) ? "relu" : "relu2"});
          return success();
        })
        .Case([&](SwigluOp swiglu) { return checkGate(swiglu, "silu"); })
        .Case([&](GegluOp geglu) { return checkGate(geglu, "gelu"); })
        .Case([&](GegluTanhOp geglu) { return checkGate(geglu, "gelu_tanh"); })
        .Case([&](DropoutOp dropout) { return checkDropout(dropout); })
        .Case([&](CallOp call) { return checkAll(calleeOf(call)); })
        .Default(success());
  }

  static int64_t lastOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape().back(); }

  LogicalResult checkEmbedding(EmbeddingOp op) {
    ArrayRef<int64_t> table = cast<RankedTensorType>(op.getTable().getType()).getShape();
    if (op.getIds() == findTokens(forward)) {
      embedded = op.getTable().getDefiningOp<GetOp>();
      return expect(op, &ModelFacts::hidden_size, table[1]);
    }
    bool ofPositions = op.getIds().getDefiningOp<IotaOp>() || op.getIds() == findInput(forward, "positions");
    if (facts.positions == "learned" && ofPositions)
      return expect(op, &ModelFacts::max_positions, table[0]);
    return success();
  }

  LogicalResult checkGate(Operation *op, StringRef activation) {
    activations.push_back({op, activation.str()});
    return expect(op, &ModelFacts::gated_mlp, true);
  }

  /// Some op has it, where it is one of those that are told from others; a head may have another.
  LogicalResult checkActivation() {
    bool isTold = llvm::is_contained({"silu", "gelu", "gelu_tanh", "relu", "relu2"}, facts.activation);
    auto says = [&](const auto &seen) { return seen.second == facts.activation; };
    if (!isTold || activations.empty() || llvm::any_of(activations, says))
      return success();
    return expect(activations.front().first, &ModelFacts::activation, activations.front().second);
  }

  /// Rope stands before the attention of its layer.
  LogicalResult checkRope(RopeOp op) {
    bool slides = facts.rope_theta_sliding > 0 && facts.sliding_window > 0 &&
                  (facts.sliding_layers.empty() || llvm::is_contained(facts.sliding_layers, attentions));
    auto theta = slides ? &ModelFacts::rope_theta_sliding : &ModelFacts::rope_theta;
    if (llvm::is_contained(facts.layers_without_rope, attentions))
      return op.emitError() << "'" << kFactsAttr << "' says that layers_without_rope is "
                            << FactText(facts.layers_without_rope) << ", but here is one, in layer "
                            << attentions << "; change one of them";
    // Scaled ones, and those of a part of a head, are ft.rotate.
    return failure(failed(expect(op, &ModelFacts::positions, std::string("rope"))) ||
                   failed(expect(op, theta, op.getBase().convertToDouble())) ||
                   (!slides && failed(expectNone(op, &ModelFacts::rope_type))) ||
                   failed(expectNone(op, &ModelFacts::rope_fraction)));
  }

  static StringRef kindOf(Value weight) {
    auto shift = weight.getDefiningOp<ShiftOp>();
    return shift && shift.getParameter() == 1 ? "rms_norm_plus_one" : "rms_norm";
  }

  LogicalResult checkNorm(Operation *op, StringRef kind, const APFloat &eps) {
    return failure(failed(expect(op, &ModelFacts::norm, kind.str())) ||
                   failed(expect(op, &ModelFacts::norm_eps, eps.convertToDouble())));
  }

  template <typename Attention> LogicalResult checkAttention(Attention op) {
    int64_t heads = op.getHeads(), kvHeads = op.getKvHeads(), size = lastOf(op.getOut()) / heads;
    int64_t layer = attentions++;
    double softcap = op.getSoftcap() ? op.getSoftcap()->convertToDouble() : 0;
    double dropout = op.getRate() ? op.getRate()->convertToDouble() : 0;
    return failure(
        failed(expect(op, &ModelFacts::num_heads, heads)) ||
        failed(expect(op, &ModelFacts::num_kv_heads, kvHeads)) ||
        failed(expect(op, &ModelFacts::head_size, size)) || failed(checkWindow(op, layer)) ||
        failed(checkScale(op, size, layer)) || failed(expect(op, &ModelFacts::attention_softcap, softcap)) ||
        failed(checkBias(op)) ||
        (facts.latent_bits == 0 && failed(expect(op, &ModelFacts::causal, bool(op.getCausal())))) ||
        failed(expect(op, &ModelFacts::attention_dropout, dropout)));
  }

  template <typename Attention> LogicalResult checkWindow(Attention op, int64_t layer) {
    int64_t window = op.getWindow().value_or(0);
    if (facts.sliding_layers.empty() || facts.sliding_window == 0)
      return expect(op, &ModelFacts::sliding_window, window);
    // Its attentions are more than its layers.
    if (facts.latent_bits > 0)
      return expectNone(op, &ModelFacts::sliding_layers);
    bool slides = llvm::is_contained(facts.sliding_layers, layer);
    if (slides && window > 0)
      return expect(op, &ModelFacts::sliding_window, window);
    if (slides == (window > 0))
      return success();
    return op->emitError() << "'" << kFactsAttr << "' says that sliding_layers is "
                           << FactText(facts.sliding_layers) << ", but here, in layer " << layer
                           << ", there is " << (slides ? "no window" : "one") << "; change one of them";
  }

  /// Neutral where it is what attention does anyway, in fp32, which it is computed in.
  template <typename Attention> LogicalResult checkScale(Attention op, int64_t size, int64_t layer) {
    double usual = 1 / std::sqrt(double(size)),
           scale = op.getScale() ? op.getScale()->convertToDouble() : usual;
    if (facts.attention_scale_by_layer)
      scale *= double(layer + 1);
    double wanted = facts.attention_scale != 0 ? facts.attention_scale : usual;
    if (float(scale) == float(wanted))
      return success();
    return expect(op, &ModelFacts::attention_scale, float(scale) == float(usual) ? 0 : scale);
  }

  /// No fact says that scores have one.
  template <typename Attention> LogicalResult checkBias(Attention op) {
    if (!op.getAlibi())
      return success();
    return op->emitError() << "'" << kFactsAttr << "' cannot say that attention has alibi; remove '"
                           << kFactsAttr << "' or alibi";
  }

  LogicalResult checkDropout(DropoutOp op) {
    double rate = op.getRate().convertToDouble();
    if (rate == facts.embedding_dropout)
      return success();
    return expect(op, &ModelFacts::residual_dropout, rate);
  }

  LogicalResult checkVocabulary() {
    auto size = module->getAttrOfType<IntegerAttr>(kVocabSizeAttr);
    return size ? expect(module, &ModelFacts::vocab_size, size.getInt()) : success();
  }

  /// One attention each; the Free Transformer's encoder has one more.
  LogicalResult checkLayers() {
    return attentions == 0 ? success()
                           : expect(module, &ModelFacts::num_layers, attentions - (facts.latent_bits > 0));
  }

  /// The logits and the tokens read one parameter when the head is tied; that of a classifier is none of
  /// language.
  LogicalResult checkHead() {
    if (facts.num_labels > 0)
      return success();
    for (CrossEntropyOp loss : forward.getOps<CrossEntropyOp>()) {
      Value logits = loss.getLogits();
      auto cap = logits.getDefiningOp<SoftCapOp>();
      if (failed(expect(loss, &ModelFacts::logit_softcap, cap ? cap.getParameter() : 0.0)))
        return failure();
      auto product = (cap ? cap.getA() : logits).getDefiningOp<MatmulOp>();
      auto head = product ? product.getB().getDefiningOp<GetOp>() : GetOp();
      if (!head || !embedded)
        continue;
      bool tied = head.getParameterAttr() == embedded.getParameterAttr();
      if (failed(expect(product, &ModelFacts::tied_head, tied)))
        return failure();
    }
    return success();
  }

  ModuleOp module;
  func::FuncOp forward;
  const ModelFacts &facts;
  GetOp embedded; // where the tokens are looked up
  SmallVector<std::pair<Operation *, std::string>> activations;
  int64_t attentions = 0; // ops of @forward
};

} // namespace

LogicalResult checkFacts(ModuleOp module, func::FuncOp forward) {
  FailureOr<std::optional<ModelFacts>> facts = factsOf(module);
  if (failed(facts))
    return failure();
  return facts->has_value() ? FactChecker(module, forward, **facts).run() : success();
}

} // namespace ft::compiler
