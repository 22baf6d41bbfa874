// Clusters of every shape that a space may have. The reference walks whole tensors in f64, so values are of
// 16 bits at the borders alone: what is rounded in between is compared bit by bit, with clusters of one op
// (test/e2e/clusters_test.py).
#include <algorithm>
#include <cmath>
#include <memory>

#include "fmt/format.h"
#include "test/conformance/case.h"
#include "test/conformance/cluster_maker.h"
#include "test/support/elementwise_f64.h"

namespace ft::conformance {
namespace {

using Op = ClusterBody::Op;

double Reduced(ReductionKind kind, double a, double b) {
  if (kind == ReductionKind::kSum) return a + b;
  return kind == ReductionKind::kMax ? std::max(a, b) : std::min(a, b);
}

// Every value at every place of the space.
class Reference {
 public:
  Reference(const ClusterBody& body, const Arrays& in) : body_(body) {
    for (size_t i = 0; i < body.inputs.size(); ++i) {
      const ClusterBody::Input& input = body.inputs[i];
      values_.push_back(At([&](int64_t row, int64_t column) {
        const int64_t r = row % input.rows;
        return in[i].values[input.columns ? r * body.columns + column : r];
      }));
    }
    for (const Op& op : body.ops) values_.push_back(ValueOf(op));
  }

  Array ResultOf(const ClusterBody::Output& output) const {
    const std::vector<double>& value = values_[output.value];
    Array result =
        Typed(Constant({output.over_rows ? body_.columns : body_.Elements(body_.rows, output.columns)}, 0),
              output.dtype);
    for (int64_t i = 0; i < result.size(); ++i) {
      result.values[i] = value[output.columns ? i : i * body_.columns];
      for (int64_t row = 1; output.over_rows && row < body_.rows; ++row)
        result.values[i] = Reduced(output.reduction, result.values[i], value[row * body_.columns + i]);
    }
    return result;
  }

 private:
  template <typename F>
  std::vector<double> At(F f) const {
    std::vector<double> result;
    for (int64_t row = 0; row < body_.rows; ++row) {
      for (int64_t column = 0; column < (row + 1 == body_.rows ? body_.last_columns : body_.columns);
           ++column)
        result.push_back(f(row, column));
    }
    return result;
  }

  std::vector<double> ValueOf(const Op& op) const {
    const auto place = [&](int64_t row, int64_t column) { return row * body_.columns + column; };
    if (op.kind == Op::Kind::kReduce) {
      const std::vector<double>& x = values_[op.operands[0]];
      return At([&](int64_t row, int64_t) {
        double sum = x[place(row, 0)];
        for (int64_t i = 1; i < body_.columns; ++i) sum = Reduced(op.reduction, sum, x[place(row, i)]);
        return sum;
      });
    }
    return At([&](int64_t row, int64_t column) {
      if (op.kind == Op::Kind::kFill) return op.parameters[0];
      double in[kMaxElementwiseOperands] = {}, parameters[2] = {};
      for (size_t i = 0; i < op.operands.size(); ++i) in[i] = values_[op.operands[i]][place(row, column)];
      std::copy(op.parameters.begin(), op.parameters.end(), parameters);
      if (op.kind == Op::Kind::kElementwise) return test::EvaluateElementwise(op.function, in, parameters);
      return IsFloat(op.dtype) ? in[0] : op.dtype == DType::kU8 ? double(in[0] != 0) : std::trunc(in[0]);
    });
  }

  const ClusterBody& body_;
  std::vector<std::vector<double>> values_;
};

Case CaseOf(const ClusterMaker& maker, const std::string& label, double range = 2.0) {
  const ClusterBody& body = maker.body();
  Case result = {"cluster", fmt::format("{} {} x {}", label, body.rows, body.columns), {}, {}, {}};
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    const ClusterBody::Input& input = body.inputs[i];
    result.in.push_back(
        Numbers({body.Elements(input.rows, input.columns)}, 97 * (i + 1), input.dtype, range));
  }
  const Reference reference(body, result.in);
  std::vector<bool> taken(body.inputs.size());  // by a result
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    result.expected.push_back(reference.ResultOf(body.outputs[i]));
    for (size_t j = 0; j < body.inputs.size(); ++j) {
      if (taken[j] || !MayTakePlaceOf(body, body.inputs[j], body.outputs[i])) continue;
      taken[j] = true;
      result.rules.reusable.push_back({static_cast<int>(i), static_cast<int>(j)});
      break;
    }
  }
  result.rules.reduction = static_cast<double>(std::max(body.rows, body.columns));
  result.rules.workspace_bytes = result.rules.cuda_workspace_bytes = body.PartialBytes();
  result.attributes.SetCluster(std::make_shared<const Cluster>(Cluster{body, {}, {}}));
  return result;
}

Case Softmax(int64_t rows, int64_t columns, DType dtype) {
  ClusterMaker maker(rows, columns);
  const uint32_t x = maker.Wide(maker.Whole(dtype));
  const uint32_t e =
      maker.Of(Elementwise::kExp, {maker.Of(Elementwise::kSub, {x, maker.Reduce(ReductionKind::kMax, x)})});
  maker.Output(maker.Of(Elementwise::kDiv, {e, maker.Reduce(ReductionKind::kSum, e)}), dtype);
  return CaseOf(maker, fmt::format("softmax {}", Name(dtype)));
}

// Layer norm with its statistics, one a row.
Case Norm(int64_t rows, int64_t columns, DType dtype) {
  ClusterMaker maker(rows, columns);
  const uint32_t in = maker.Whole(dtype), w = maker.Input(dtype, 1, true),
                 b = maker.Input(DType::kF32, 1, true);
  const uint32_t x = maker.Wide(in);
  const double share = static_cast<float>(1.0 / static_cast<double>(columns));
  const uint32_t mean = maker.Of(Elementwise::kScale, {maker.Reduce(ReductionKind::kSum, x)}, {share});
  const uint32_t centered = maker.Of(Elementwise::kSub, {x, mean});
  const uint32_t squares = maker.Reduce(ReductionKind::kSum, maker.Of(Elementwise::kSquare, {centered}));
  const uint32_t variance =
      maker.Of(Elementwise::kShift, {maker.Of(Elementwise::kScale, {squares}, {share})}, {0.5});
  const uint32_t rstd = maker.Of(Elementwise::kRsqrt, {variance});
  const uint32_t normed = maker.Of(Elementwise::kMul, {centered, rstd});
  const uint32_t scaled = maker.Of(Elementwise::kMul, {normed, maker.Wide(w)});
  maker.Output(maker.Of(Elementwise::kAdd, {scaled, b}), dtype);
  maker.Output(mean, false);
  maker.Output(rstd, dtype, false);
  return CaseOf(maker, fmt::format("norm {}", Name(dtype)));
}

// Sums over rows, beside a reduction of the row, and what it was made of.
Case OverRows(int64_t rows, int64_t columns, DType dtype) {
  ClusterMaker maker(rows, columns);
  const uint32_t dy = maker.Whole(dtype), x = maker.Whole(DType::kF32),
                 scale = maker.Input(DType::kF32, rows, false);
  const uint32_t product = maker.Of(Elementwise::kMul, {maker.Wide(dy), x});
  const uint32_t sum = maker.Reduce(ReductionKind::kSum, product);
  maker.OverRows(ReductionKind::kSum, maker.Of(Elementwise::kMul, {product, scale}), DType::kF32);
  maker.Output(maker.Of(Elementwise::kSub, {product, maker.Of(Elementwise::kTanh, {sum})}), dtype);
  maker.OverRows(ReductionKind::kSum, x, dtype);
  maker.OverRows(ReductionKind::kMax, dy, dtype);
  return CaseOf(maker, fmt::format("over rows {}", Name(dtype)));
}

// Rows that repeat, one number for all, a constant.
Case Repeated(int64_t rows, int64_t columns, int64_t period) {
  ClusterMaker maker(rows, columns);
  const uint32_t x = maker.Whole(DType::kF32), table = maker.Input(DType::kF32, period, true),
                 angle = maker.Input(DType::kF32, period, false), one = maker.Input(DType::kF32, 1, false);
  const uint32_t turned = maker.Of(Elementwise::kMul, {x, maker.Of(Elementwise::kCos, {angle})});
  const uint32_t moved = maker.Of(Elementwise::kAdd, {turned, table});
  maker.Output(
      maker.Of(Elementwise::kMaximum, {maker.Of(Elementwise::kMul, {moved, one}), maker.Fill(-0.25)}));
  return CaseOf(maker, fmt::format("period {}", period));
}

// Integers and truth values.
Case Integers(int64_t rows, int64_t columns) {
  ClusterMaker maker(rows, columns);
  const uint32_t i = maker.Whole(DType::kI32), keep = maker.Whole(DType::kU8), x = maker.Whole(DType::kF32);
  const uint32_t most = maker.Reduce(ReductionKind::kMax, i);
  const uint32_t is_most = maker.Of(Elementwise::kEq, {i, most}, {}, DType::kU8);
  const uint32_t some = maker.Of(Elementwise::kOr, {is_most, keep}, {}, DType::kU8);
  const uint32_t chosen = maker.Of(Elementwise::kSelect, {some, x, maker.Fill(-1)});
  maker.Output(chosen);
  maker.Output(some);
  maker.Output(most, false);
  const uint32_t whole = maker.Convert(chosen, DType::kI32);
  maker.Output(maker.Of(Elementwise::kAdd, {whole, i}, {}, DType::kI32));
  maker.OverRows(ReductionKind::kSum, maker.Convert(some, DType::kI32), DType::kI32);
  maker.OverRows(ReductionKind::kMin, i, DType::kI32);
  return CaseOf(maker, "integers", 50);
}

// Elements in rows of 64, the last one shorter.
Case Flat(int64_t rows, int64_t last, DType dtype) {
  ClusterMaker maker(rows, kClusterLanes);
  maker.Space(rows, kClusterLanes, last);
  const uint32_t a = maker.Whole(dtype), b = maker.Whole(DType::kF32), one = maker.Input(dtype, 1, false);
  const uint32_t gate = maker.Of(Elementwise::kSigmoid, {maker.Wide(a)});
  const uint32_t product = maker.Of(Elementwise::kMul, {gate, b});
  maker.Output(maker.Of(Elementwise::kAdd, {product, maker.Wide(one)}), dtype);
  maker.Output(product);
  return CaseOf(maker, fmt::format("flat {} last {}", Name(dtype), last));
}

}  // namespace

std::vector<Case> ClusterCases() {
  std::vector<Case> cases;
  const std::pair<int64_t, int64_t> shapes[] = {{1, 1},   {1, 64},  {3, 17},  {5, 771},
                                                {67, 65}, {130, 8}, {2, 5003}};
  for (const DType dtype : kFloats) {
    for (const auto& [rows, columns] : shapes) {
      cases.push_back(Softmax(rows, columns, dtype));
      cases.push_back(Norm(rows, columns, dtype));
      cases.push_back(OverRows(rows, columns, dtype));
    }
    cases.push_back(OverRows(1100, 3, dtype));
    for (const auto& [rows, last] : {std::pair<int64_t, int64_t>{1, 1}, {1, 63}, {40, 64}, {40, 5}})
      cases.push_back(Flat(rows, last, dtype));
  }
  for (const auto& [rows, columns] : shapes) cases.push_back(Integers(rows, columns));
  for (const int64_t period : {1, 4, 12}) cases.push_back(Repeated(24, 70, period));
  return cases;
}

}  // namespace ft::conformance
