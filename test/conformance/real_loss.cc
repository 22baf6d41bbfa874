// The product of hidden states with a vocabulary, and the loss with its gradients.
//
// The loss of all rows in float64 needs all logits, which would be as many products as the GPU makes. They
// are taken from the device, once 64 of their rows and 64 of their columns have been compared; what follows
// from them is computed in float64.
#include <algorithm>
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

struct Shape {
  int64_t rows, width, vocabulary;
};

using Values = std::vector<double>;

// For each of all vectors of `lazy` (its rows) the products with the `sampled` rows of `other`: [rows of
// lazy, sampled].
Values Products(const LazyTensor& lazy, const LazyTensor& other, const std::vector<int64_t>& sampled) {
  const int64_t width = lazy.last(), rows = lazy.elements() / width,
                count = static_cast<int64_t>(sampled.size());
  Values turned(static_cast<size_t>(width * count));  // [width, sampled]
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t i = 0; i < width; ++i) turned[i * count + j] = other.At(sampled[j] * width + i);
  }
  Values products(static_cast<size_t>(rows * count));
  InParallel(rows, [&](int64_t begin, int64_t end, int64_t) {
    Values row(static_cast<size_t>(width));
    for (int64_t r = begin; r < end; ++r) {
      lazy.Read(r * width, width, row.data());
      double* const sums = &products[r * count];
      for (int64_t i = 0; i < width; ++i) {
        const double factor = row[i], *terms = &turned[i * count];
        for (int64_t j = 0; j < count; ++j) sums[j] += factor * terms[j];
      }
    }
  });
  return products;
}

double Largest(const Values& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

// sums[j] += factors[r, j] * row r of `lazy`, over all rows: [sampled, width].
Values WeightedSums(const LazyTensor& lazy, const Values& factors, int64_t count) {
  const int64_t width = lazy.last(), rows = lazy.elements() / width;
  std::vector<Values> parts(static_cast<size_t>(Parts(rows)), Values(static_cast<size_t>(count * width)));
  InParallel(rows, [&](int64_t begin, int64_t end, int64_t part) {
    Values row(static_cast<size_t>(width));
    for (int64_t r = begin; r < end; ++r) {
      lazy.Read(r * width, width, row.data());
      for (int64_t j = 0; j < count; ++j) {
        const double factor = factors[r * count + j];
        double* const sums = &parts[static_cast<size_t>(part)][j * width];
        for (int64_t i = 0; i < width; ++i) sums[i] += factor * row[i];
      }
    }
  });
  for (size_t part = 1; part < parts.size(); ++part) {
    for (size_t i = 0; i < parts[0].size(); ++i) parts[0][i] += parts[part][i];
  }
  return parts[0];
}

class Run {
 public:
  Run(const Shape& s, Bench& bench)
      : s_(s),
        bench_(bench),
        // Logits of deviation 1, as those of a young model.
        x_({LazyTensor::Normal({s.rows, s.width}, 221, 1.0)}),
        weight_(
            {LazyTensor::Normal({s.vocabulary, s.width}, 222, 1 / std::sqrt(static_cast<double>(s.width)))}),
        targets_({LazyTensor::Integers({s.rows}, 223, s.vocabulary)}),
        rows_(SampleOf(s.rows, kSample, 5)),
        columns_(Columns(s)) {}

  absl::StatusOr<Findings> Do(bool twice) {
    FT_RETURN_IF_ERROR(PlaceAll());
    FT_ASSIGN_OR_RETURN(Findings findings, RunSteps(bench_, MakeSteps(), twice));
    FT_RETURN_IF_ERROR(ReadLogits());
    CompareLogits(findings);
    FT_RETURN_IF_ERROR(CompareLoss(findings));
    FT_RETURN_IF_ERROR(CompareGradients(findings));
    return findings;
  }

 private:
  // Half of them targets, whose gradients differ from those of others.
  std::vector<int64_t> Columns(const Shape& s) const {
    std::vector<int64_t> columns = SampleOf(s.vocabulary, kSample / 2, 6);
    for (const int64_t row : SampleOf(s.rows, kSample / 2, 7))
      columns.push_back(static_cast<int64_t>(targets_.At(row)));
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    return columns;
  }

  absl::Status PlaceAll() {
    FT_ASSIGN_OR_RETURN(x_there_, Place(bench_, "x", x_.dims(), kBF16));
    FT_ASSIGN_OR_RETURN(weight_there_, Place(bench_, "weight", weight_.dims(), kBF16));
    FT_ASSIGN_OR_RETURN(targets_there_, Place(bench_, "targets", targets_.dims(), DType::kI32));
    FT_ASSIGN_OR_RETURN(logits_there_, Place(bench_, "product", {s_.rows, s_.vocabulary}, kBF16));
    FT_ASSIGN_OR_RETURN(loss_there_, Place(bench_, "loss", {}, DType::kF32));
    FT_ASSIGN_OR_RETURN(dx_there_, Place(bench_, "dx", x_.dims(), kBF16));
    FT_ASSIGN_OR_RETURN(dweight_there_, Place(bench_, "dweight", weight_.dims(), DType::kF32));
    const int64_t bytes = std::max(
        cuda_workspace::Matmul(),
        cuda_workspace::LinearCrossEntropyGrad(s_.rows, s_.vocabulary, s_.width, kBF16, DType::kF32));
    FT_ASSIGN_OR_RETURN(workspace_, PlaceWorkspace(bench_, bytes));
    return absl::OkStatus();
  }

  Steps MakeSteps() const {
    return {.kernels = {{"matmul",
                         {.in = {x_there_.tensor, weight_there_.tensor, {}, {}},
                          .out = {logits_there_.tensor},
                          .workspace = workspace_.tensor},
                         Attributes({{"transpose_b", int64_t{1}}})},
                        {"linear_cross_entropy_loss_grad",
                         {.in = {x_there_.tensor, weight_there_.tensor, targets_there_.tensor, {}, {}},
                          .out = {loss_there_.tensor, dx_there_.tensor, dweight_there_.tensor},
                          .workspace = workspace_.tensor},
                         Attributes({{"dloss", 1.0}})}},
            .inputs = {{&x_, &x_there_}, {&weight_, &weight_there_}, {&targets_, &targets_there_}},
            .results = {&logits_there_, &loss_there_, &dx_there_, &dweight_there_}};
  }

  // From the device's logits: logsumexp and loss of each row, the sampled rows and columns.
  absl::Status ReadLogits() {
    const int64_t n = s_.vocabulary, at_once = std::max<int64_t>(1, (int64_t{16} << 20) / n);
    lse_.resize(static_cast<size_t>(s_.rows));
    losses_.resize(static_cast<size_t>(s_.rows));
    of_columns_.resize(static_cast<size_t>(s_.rows) * columns_.size());
    Values chunk(static_cast<size_t>(std::min(at_once, s_.rows) * n));
    for (int64_t first = 0; first < s_.rows; first += at_once) {
      const int64_t count = std::min(at_once, s_.rows - first);
      FT_RETURN_IF_ERROR(ReadElements(bench_, logits_there_, first * n, count * n, chunk.data()));
      InParallel(count, [&](int64_t begin, int64_t end, int64_t) {
        for (int64_t r = begin; r < end; ++r) LookAt(first + r, &chunk[r * n]);
      });
      for (const int64_t row : rows_) {
        if (row >= first && row < first + count)
          of_rows_.insert(of_rows_.end(), chunk.begin() + (row - first) * n,
                          chunk.begin() + (row - first + 1) * n);
      }
    }
    return absl::OkStatus();
  }

  void LookAt(int64_t row, const double* logits) {
    const double largest = *std::max_element(logits, logits + s_.vocabulary);
    double sum = 0;
    for (int64_t c = 0; c < s_.vocabulary; ++c) sum += std::exp(logits[c] - largest);
    lse_[row] = largest + std::log(sum);
    losses_[row] = lse_[row] - logits[static_cast<int64_t>(targets_.At(row))];
    for (size_t j = 0; j < columns_.size(); ++j)
      of_columns_[static_cast<size_t>(row) * columns_.size() + j] = logits[columns_[j]];
  }

  void CompareLogits(Findings& findings) const {
    Judge rows("64 rows of the product"), columns("64 columns of the product");
    const auto width = static_cast<double>(s_.width);
    const Values by_token = Products(weight_, x_, rows_);  // [vocabulary, sampled rows]
    const double largest = Largest(by_token);
    for (size_t j = 0; j < rows_.size(); ++j) {
      Values expected;
      for (int64_t c = 0; c < s_.vocabulary; ++c) expected.push_back(by_token[c * rows_.size() + j]);
      rows.Elements(expected, {&of_rows_[j * expected.size()], expected.size()}, width, largest, kBF16,
                    fmt::format("row {}", rows_[j]));
    }
    const Values by_row = Products(x_, weight_, columns_);  // [rows, sampled columns]
    columns.Elements(by_row, of_columns_, width, largest, kBF16, "rows by sampled columns");
    findings.push_back(rows.finding());
    findings.push_back(columns.finding());
  }

  // The kernel's own logits may differ from the product's by a rounding, of 0.3 * 2^-8 of their value of
  // about 1 on average, with random signs; 8 is the margin of the maximum, as in case.h.
  absl::Status CompareLoss(Findings& findings) const {
    double got = 0, mean = 0;
    FT_RETURN_IF_ERROR(ReadElements(bench_, loss_there_, 0, 1, &got));
    for (const double loss : losses_) mean += loss / static_cast<double>(s_.rows);
    Judge judge("loss");
    judge.Row({&mean, 1}, {&got, 1},
              8 * 0.3 * 0x1p-8 / std::sqrt(static_cast<double>(s_.rows)) / std::abs(mean), 0,
              fmt::format("{} rows", s_.rows));
    findings.push_back(judge.finding());
    return absl::OkStatus();
  }

  double Gradient(double logit, int64_t row, int64_t token) const {
    const double p = std::exp(logit - lse_[row]);
    return (p - (static_cast<int64_t>(targets_.At(row)) == token ? 1 : 0)) / static_cast<double>(s_.rows);
  }

  absl::Status CompareGradients(Findings& findings) const {
    const auto count = static_cast<int64_t>(rows_.size()), tokens = static_cast<int64_t>(columns_.size());
    Values by_token(static_cast<size_t>(s_.vocabulary * count));
    for (int64_t j = 0; j < count; ++j) {
      for (int64_t c = 0; c < s_.vocabulary; ++c)
        by_token[c * count + j] = Gradient(of_rows_[j * s_.vocabulary + c], rows_[j], c);
    }
    Values by_row = of_columns_;
    for (int64_t r = 0; r < s_.rows; ++r) {
      for (int64_t j = 0; j < tokens; ++j)
        by_row[r * tokens + j] = Gradient(by_row[r * tokens + j], r, columns_[j]);
    }
    FT_RETURN_IF_ERROR(CompareRows(dx_there_, rows_, WeightedSums(weight_, by_token, count), findings));
    return CompareRows(dweight_there_, columns_, WeightedSums(x_, by_row, tokens), findings);
  }

  absl::Status CompareRows(const Placed& placed, const std::vector<int64_t>& sampled, const Values& expected,
                           Findings& findings) const {
    Judge judge("64 rows of " + placed.name);
    Values got(static_cast<size_t>(s_.width));
    for (size_t j = 0; j < sampled.size(); ++j) {
      FT_RETURN_IF_ERROR(ReadElements(bench_, placed, sampled[j] * s_.width, s_.width, got.data()));
      judge.Row({&expected[j * got.size()], got.size()}, got, 0x1p-7, 0, fmt::format("row {}", sampled[j]));
    }
    findings.push_back(judge.finding());
    return absl::OkStatus();
  }

  const Shape s_;
  Bench& bench_;
  const LazyTensor x_, weight_, targets_;
  const std::vector<int64_t> rows_, columns_;
  Placed x_there_, weight_there_, targets_there_, logits_there_, loss_there_, dx_there_, dweight_there_,
      workspace_;
  Values lse_, losses_;  // of all rows
  Values of_rows_;       // [sampled rows, vocabulary]
  Values of_columns_;    // [rows, sampled columns]
};

}  // namespace

std::vector<RealShape> RealLoss(ShapeScale scale) {
  const Shape s = scale == ShapeScale::kReal ? Shape{8192, 768, 50257} : Shape{200, 72, 517};
  return {{fmt::format("loss_{}x{}x{}", s.rows, s.width, s.vocabulary),
           [s](Bench& bench, bool twice) { return Run(s, bench).Do(twice); }}};
}

}  // namespace ft::conformance
