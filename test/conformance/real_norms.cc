// The residual sum, the norm of it, and the norm's gradients.
#include <cmath>

#include "fmt/format.h"
#include "runtime/base/cuda_workspace.h"
#include "runtime/base/status_macros.h"
#include "test/conformance/case.h"
#include "test/conformance/real_shapes.h"

namespace ft::conformance {
namespace {

constexpr DType kBF16 = DType::kBF16;
constexpr int64_t kSample = 64;
constexpr double kEps = 1e-5;

struct Shape {
  int64_t rows, columns;
  bool layer;  // layer_norm, else rms_norm
};

using Values = std::vector<double>;

class Run {
 public:
  Run(const Shape& s, Bench& bench)
      : s_(s),
        bench_(bench),
        a_(LazyTensor::Normal({s.rows, s.columns}, 231, 1.0)),
        b_(LazyTensor::Normal({s.rows, s.columns}, 232, 0.5)),
        dy_(LazyTensor::Normal({s.rows, s.columns}, 233, 1.0)),
        weight_(LazyTensor::Normal({s.columns}, 234, 1.0)),
        bias_(LazyTensor::Normal({s.columns}, 235, 1.0)),
        columns_(SampleOf(s.columns, kSample, 8)) {
    for (int64_t i = 0; i < s.columns; ++i) weights_.push_back(weight_.At(i));
  }

  absl::StatusOr<Findings> Do(bool twice) {
    FT_RETURN_IF_ERROR(PlaceAll());
    FT_ASSIGN_OR_RETURN(Findings findings, RunSteps(bench_, MakeSteps(), twice));
    FT_RETURN_IF_ERROR(CompareRows(findings));
    FT_RETURN_IF_ERROR(CompareColumns(findings));
    return findings;
  }

 private:
  absl::Status PlaceAll() {
    for (auto [placed, name] : {std::pair{&a_there_, "a"},
                                {&b_there_, "b"},
                                {&dy_there_, "dy"},
                                {&sum_, "sum"},
                                {&y_, "norm"},
                                {&dx_, "dx"}}) {
      FT_ASSIGN_OR_RETURN(*placed, Place(bench_, name, a_.dims(), kBF16));
    }
    FT_ASSIGN_OR_RETURN(weight_there_, Place(bench_, "weight", weight_.dims(), kBF16));
    FT_ASSIGN_OR_RETURN(bias_there_, Place(bench_, "bias", bias_.dims(), kBF16));
    FT_ASSIGN_OR_RETURN(dweight_, Place(bench_, "dweight", weight_.dims(), DType::kF32));
    FT_ASSIGN_OR_RETURN(dbias_, Place(bench_, "dbias", bias_.dims(), DType::kF32));
    FT_ASSIGN_OR_RETURN(workspace_,
                        PlaceWorkspace(bench_, cuda_workspace::LayerNormGrad(s_.rows, s_.columns)));
    return absl::OkStatus();
  }

  Steps MakeSteps() const {
    const std::string norm = s_.layer ? "layer_norm" : "rms_norm";
    const KernelAttributes attributes = Attributes({{"eps", kEps}});
    KernelStep forward{"add_" + norm,
                       {.in = {a_there_.tensor, b_there_.tensor, weight_there_.tensor},
                        .out = {sum_.tensor, y_.tensor},
                        .workspace = {}},
                       attributes};
    KernelStep backward{norm + "_grad",
                        {.in = {dy_there_.tensor, sum_.tensor, weight_there_.tensor},
                         .out = {dx_.tensor, dweight_.tensor},
                         .workspace = workspace_.tensor},
                        attributes};
    Steps steps{
        .kernels = {},
        .inputs = {{&a_, &a_there_}, {&b_, &b_there_}, {&dy_, &dy_there_}, {&weight_, &weight_there_}},
        .results = {&sum_, &y_, &dx_, &dweight_}};
    if (s_.layer) {
      forward.operands.in.push_back(bias_there_.tensor);
      backward.operands.out.push_back(dbias_.tensor);
      steps.inputs.push_back({&bias_, &bias_there_});
      steps.results.push_back(&dbias_);
    }
    steps.kernels = {std::move(forward), std::move(backward)};
    return steps;
  }

  // The sum as it is stored, normalised, and by what.
  struct Row {
    Values sum, normal;
    double scale = 0;
  };
  void Normalise(int64_t row, Row& out) const {
    const int64_t n = s_.columns;
    out.sum.resize(static_cast<size_t>(n));
    double mean = 0, square = 0;
    for (int64_t i = 0; i < n; ++i) {
      out.sum[i] = RoundTo(a_.At(row * n + i) + b_.At(row * n + i), kBF16);
      if (s_.layer) mean += out.sum[i] / static_cast<double>(n);
    }
    for (const double value : out.sum) square += (value - mean) * (value - mean) / static_cast<double>(n);
    out.scale = 1 / std::sqrt(square + kEps);
    out.normal = out.sum;
    for (double& value : out.normal) value = (value - mean) * out.scale;
  }

  Values Gradient(int64_t row, const Row& at) const {
    const int64_t n = s_.columns;
    Values g(static_cast<size_t>(n));
    double mean = 0, along = 0;
    for (int64_t i = 0; i < n; ++i) {
      g[i] = dy_.At(row * n + i) * weights_[i];
      if (s_.layer) mean += g[i] / static_cast<double>(n);
      along += g[i] * at.normal[i] / static_cast<double>(n);
    }
    for (int64_t i = 0; i < n; ++i) g[i] = at.scale * (g[i] - mean - at.normal[i] * along);
    return g;
  }

  absl::Status Compare(const Placed& placed, int64_t row, const Values& expected, double scale,
                       Judge& judge) const {
    Values got(static_cast<size_t>(s_.columns));
    FT_RETURN_IF_ERROR(ReadElements(bench_, placed, row * s_.columns, s_.columns, got.data()));
    judge.Elements(expected, got, static_cast<double>(s_.columns), scale, kBF16, fmt::format("row {}", row));
    return absl::OkStatus();
  }

  absl::Status CompareRows(Findings& findings) const {
    Judge of_sum("64 rows of sum"), of_norm("64 rows of norm"), of_dx("64 rows of dx");
    // Normal numbers, times weights that are too.
    constexpr double kLargest = 4, kProduct = 12;
    for (const int64_t row : SampleOf(s_.rows, kSample, 9)) {
      Row at;
      Normalise(row, at);
      Values norm = at.normal;
      for (int64_t i = 0; i < s_.columns; ++i) norm[i] = norm[i] * weights_[i] + (s_.layer ? bias_.At(i) : 0);
      FT_RETURN_IF_ERROR(Compare(sum_, row, at.sum, kLargest, of_sum));
      FT_RETURN_IF_ERROR(Compare(y_, row, norm, kProduct, of_norm));
      FT_RETURN_IF_ERROR(Compare(dx_, row, Gradient(row, at), kProduct, of_dx));
    }
    for (const Judge* judge : {&of_sum, &of_norm, &of_dx}) findings.push_back(judge->finding());
    return absl::OkStatus();
  }

  absl::Status CompareColumns(Findings& findings) const {
    const size_t count = columns_.size();
    std::vector<Values> weights(static_cast<size_t>(Parts(s_.rows)), Values(count)), biases = weights;
    InParallel(s_.rows, [&](int64_t begin, int64_t end, int64_t part) {
      Row at;
      for (int64_t row = begin; row < end; ++row) {
        Normalise(row, at);
        for (size_t j = 0; j < count; ++j) {
          const double dy = dy_.At(row * s_.columns + columns_[j]);
          weights[static_cast<size_t>(part)][j] += dy * at.normal[columns_[j]];
          biases[static_cast<size_t>(part)][j] += dy;
        }
      }
    });
    FT_RETURN_IF_ERROR(CompareSums(dweight_, weights, findings));
    return s_.layer ? CompareSums(dbias_, biases, findings) : absl::OkStatus();
  }

  absl::Status CompareSums(const Placed& placed, const std::vector<Values>& parts, Findings& findings) const {
    Values expected(columns_.size()), got(columns_.size());
    for (size_t j = 0; j < expected.size(); ++j) {
      for (const Values& part : parts) expected[j] += part[j];
      FT_RETURN_IF_ERROR(ReadElements(bench_, placed, columns_[j], 1, &got[j]));
    }
    Judge judge("64 columns of " + placed.name);
    // Sums of as many numbers around 1 as there are rows.
    const auto rows = static_cast<double>(s_.rows);
    judge.Elements(expected, got, rows, 2 * std::sqrt(rows), DType::kF32, "sampled columns");
    findings.push_back(judge.finding());
    return absl::OkStatus();
  }

  const Shape s_;
  Bench& bench_;
  const LazyTensor a_, b_, dy_, weight_, bias_;
  const std::vector<int64_t> columns_;
  Values weights_;
  Placed a_there_, b_there_, dy_there_, weight_there_, bias_there_, sum_, y_, dx_, dweight_, dbias_,
      workspace_;
};

}  // namespace

std::vector<RealShape> RealNorms(ShapeScale scale) {
  const std::vector<Shape> real = {{65536, 768, true}, {65536, 1536, false}},
                           small = {{600, 96, true}, {600, 200, false}};
  std::vector<RealShape> shapes;
  for (const Shape& s : scale == ShapeScale::kReal ? real : small) {
    shapes.push_back({fmt::format("{}_norm_{}x{}", s.layer ? "layer" : "rms", s.rows, s.columns),
                      [s](Bench& bench, bool twice) { return Run(s, bench).Do(twice); }});
  }
  return shapes;
}

}  // namespace ft::conformance
