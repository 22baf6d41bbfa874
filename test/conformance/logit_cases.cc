// What ft.cross_entropy and its gradient are as clusters, with rows that are left out.
#include <algorithm>
#include <memory>
#include <utility>

#include "fmt/format.h"
#include "test/conformance/case.h"
#include "test/conformance/cluster_maker.h"
#include "test/conformance/loss_reference.h"

namespace ft::conformance {
namespace {

// The clusters that ft.cross_entropy and its gradient become, by hand.
class LossOfLogits {
 public:
  LossOfLogits(int64_t rows, int64_t vocabulary, DType dtype)
      : maker_(rows, vocabulary),
        dtype_(dtype),
        logits_(maker_.Whole(dtype)),
        targets_(maker_.Input(DType::kI32, rows, false)),
        scale_(maker_.Input(DType::kF32, 1, false)),
        rest_(maker_.Of(Elementwise::kSub, {Wide(), maker_.Reduce(ReductionKind::kMax, Wide())})),
        exponential_(maker_.Of(Elementwise::kExp, {rest_})),
        sum_(maker_.Reduce(ReductionKind::kSum, exponential_)),
        is_target_(maker_.Of(Elementwise::kEq, {targets_, maker_.Iota(1, true)}, {}, DType::kU8)),
        counts_(maker_.Of(Elementwise::kGe,
                          {targets_, maker_.Of(Elementwise::kScale, {targets_}, {0.0}, DType::kI32)}, {},
                          DType::kU8)) {}

  ClusterBody Losses() && {
    const uint32_t zero = maker_.Fill(0);
    const uint32_t at_target =
        maker_.Reduce(ReductionKind::kSum, maker_.Of(Elementwise::kSelect, {is_target_, rest_, zero}));
    const uint32_t loss = maker_.Of(Elementwise::kSub, {maker_.Of(Elementwise::kLog, {sum_}), at_target});
    maker_.Output(maker_.Of(Elementwise::kSelect, {counts_, loss, zero}), false);
    return maker_.body();
  }

  ClusterBody Gradients() && {
    const uint32_t zero = maker_.Fill(0), scale = maker_.Of(Elementwise::kSelect, {counts_, scale_, zero});
    const uint32_t share = maker_.Of(Elementwise::kDiv, {scale, sum_});
    const uint32_t softmax = maker_.Of(Elementwise::kMul, {share, exponential_});
    const uint32_t one_hot = maker_.Of(Elementwise::kSelect, {is_target_, scale, zero});
    const uint32_t gradient = maker_.Of(Elementwise::kSub, {softmax, one_hot});
    if (dtype_ == DType::kF32) {
      maker_.Output(gradient);
    } else {
      maker_.Output(gradient, dtype_);
    }
    return maker_.body();
  }

 private:
  uint32_t Wide() {
    if (dtype_ == DType::kF32) return logits_;
    if (wide_ == 0) wide_ = maker_.Wide(logits_);
    return wide_;
  }

  ClusterMaker maker_;
  DType dtype_;
  uint32_t wide_ = 0;
  uint32_t logits_, targets_, scale_, rest_, exponential_, sum_, is_target_, counts_;
};

void AddCrossEntropy(std::vector<Case>& cases, int64_t rows, int64_t vocabulary, DType dtype, Ignore ignore) {
  const Array logits = As(Random({rows, vocabulary}, 67, 9.0), dtype);
  const Array targets = Targets(rows, vocabulary, 68, ignore);
  const double counted = std::max<int64_t>(1, Counted(targets)), dloss = 1.5;
  const std::string label = fmt::format("{}x{} {}{}", rows, vocabulary, Name(dtype), Describe(ignore));
  const auto add = [&](const char* what, ClusterBody body, Array expected, const Rules& rules) {
    Case made = {"cluster",
                 fmt::format("{} {}", what, label),
                 {logits, targets, Scalar(dloss / counted)},
                 {},
                 {std::move(expected)},
                 rules};
    made.attributes.SetCluster(std::make_shared<const Cluster>(Cluster{std::move(body), {}, {}}));
    cases.push_back(std::move(made));
  };
  const double n = vocabulary;
  add("loss of logits", LossOfLogits(rows, vocabulary, dtype).Losses(), RowLosses(logits, targets),
      {.reduction = n, .magnitude = 9});
  Array gradient = LogitGradients(logits, targets, dloss);
  gradient.dtype = dtype;
  add("gradient of logits", LossOfLogits(rows, vocabulary, dtype).Gradients(), std::move(gradient),
      {.reduction = n, .magnitude = 9.0 / counted, .reusable = {{0, 0}}});
}

}  // namespace

std::vector<Case> LogitCases() {
  std::vector<Case> cases;
  for (Ignore ignore : {Ignore::kNone, Ignore::kSome, Ignore::kAll}) {
    for (DType dtype : kFloats) {
      // The last is longer than what the threads of a GPU's block read at once.
      for (const auto& [rows, vocabulary] :
           {std::pair<int64_t, int64_t>{1, 2}, {3, 7}, {33, 50}, {300, 1031}, {5, 20011}})
        AddCrossEntropy(cases, rows, vocabulary, dtype, ignore);
      // So long that a GPU takes other blocks for it.
      if (ignore == Ignore::kSome) AddCrossEntropy(cases, 2, 70001, dtype, ignore);
    }
  }
  return cases;
}

}  // namespace ft::conformance
