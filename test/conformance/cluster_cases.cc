// Clusters of every shape that a space may have. The reference walks whole tensors in f64, so values are of
// 16 bits at the borders alone: what is rounded in between is compared bit by bit, with clusters of one op
// (test/e2e/clusters_test.py).
#include <algorithm>
#include <cmath>
#include <memory>

#include "fmt/format.h"
#include "runtime/base/philox.h"
#include "test/conformance/case.h"
#include "test/conformance/cluster_maker.h"
#include "test/support/elementwise_f64.h"

namespace ft::conformance {
namespace {

using Op = ClusterBody::Op;
using Values = ClusterMaker::Values;

double Reduced(ReductionKind kind, double a, double b) {
  if (kind == ReductionKind::kSum) return a + b;
  return kind == ReductionKind::kMax ? std::max(a, b) : std::min(a, b);
}

constexpr int64_t kSeed = -1234567890123, kMicroStep = 17, kRank = 3;

int64_t StreamOf(uint32_t draw) { return 5 + 2 * draw; }

// Every value at every place of the space.
class Reference {
 public:
  Reference(const ClusterBody& body, const Arrays& in) : body_(body), in_(in) {
    for (const ClusterBody::Read& read : body.reads) {
      values_.push_back(At([&](int64_t row, int64_t column) {
        return in[read.input].values[ElementAt(read.place, row, column)];
      }));
    }
    for (const Op& op : body.ops) values_.push_back(ValueOf(op));
  }

  Array ResultOf(uint32_t number) const {
    const ClusterBody::Buffer& buffer = body_.results[number];
    Array result = Typed(Constant({buffer.elements}, 0), buffer.dtype);
    for (const ClusterBody::Output& output : body_.outputs) {
      if (output.result != number) continue;
      int64_t i = 0;
      At([&](int64_t row, int64_t column) {
        const double value = values_[output.value][i++];
        double& to = result.values[ElementAt(output.place, row, column)];
        return to = output.over_rows && row > 0 ? Reduced(output.reduction, to, value) : value;
      });
      if (output.acc < 0) continue;
      for (int64_t column = 0; column < body_.columns; ++column) {
        double& to = result.values[ElementAt(output.place, 0, column)];
        to = in_[static_cast<size_t>(output.acc)].values[ElementAt(output.place, 0, column)] +
             RoundTo(to, buffer.dtype);
      }
    }
    return result;
  }

 private:
  static int64_t ElementAt(const ClusterBody::Place& place, int64_t row, int64_t column) {
    int64_t element = place.begin + column * place.column_stride;
    for (const auto& step : place.steps) element += row / step.every % step.extent * step.stride;
    return element;
  }

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
    if (op.kind == Op::Kind::kRandomBits) {
      return At([&](int64_t row, int64_t column) {
        const auto element = static_cast<uint64_t>(kRank * op.elements + ElementAt(op.place, row, column));
        const auto stream = static_cast<uint32_t>(kFirstOpStream + StreamOf(op.draw));
        const PhiloxBlock block = Philox4x32(static_cast<uint64_t>(kSeed), stream, kMicroStep, element / 4);
        return static_cast<double>(static_cast<int32_t>(block[element % 4]));
      });
    }
    return At([&](int64_t row, int64_t column) {
      if (op.kind == Op::Kind::kFill) return op.parameters[0];
      if (op.kind == Op::Kind::kIota) return static_cast<double>(ElementAt(op.place, row, column));
      double in[kMaxElementwiseOperands] = {}, parameters[2] = {};
      for (size_t i = 0; i < op.operands.size(); ++i) in[i] = values_[op.operands[i]][place(row, column)];
      std::copy(op.parameters.begin(), op.parameters.end(), parameters);
      if (op.kind == Op::Kind::kElementwise) return test::EvaluateElementwise(op.function, in, parameters);
      return IsFloat(op.dtype) ? in[0] : op.dtype == DType::kU8 ? double(in[0] != 0) : std::trunc(in[0]);
    });
  }

  const ClusterBody& body_;
  const Arrays& in_;
  std::vector<std::vector<double>> values_;
};

Case CaseOf(const ClusterMaker& maker, const std::string& label, double range = 2.0) {
  const ClusterBody& body = maker.body();
  Case result = {"cluster", fmt::format("{} {} x {}", label, body.rows, body.columns), {}, {}, {}};
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    const ClusterBody::Buffer& input = body.inputs[i];
    if (input.state) {
      result.in.push_back({{3}, {double(kSeed), double(kMicroStep), double(kRank)}, DType::kI64});
      continue;
    }
    result.in.push_back(Numbers({input.elements}, 97 * (i + 1), input.dtype, range));
  }
  const Reference reference(body, result.in);
  std::vector<bool> taken(body.inputs.size());  // by a result
  for (uint32_t i = 0; i < body.results.size(); ++i) {
    result.expected.push_back(reference.ResultOf(i));
    for (uint32_t j = 0; j < body.inputs.size(); ++j) {
      if (taken[j] || !MayTakePlaceOf(body, j, i)) continue;
      taken[j] = true;
      result.rules.reusable.push_back({static_cast<int>(i), static_cast<int>(j)});
      break;
    }
  }
  result.rules.reduction = static_cast<double>(std::max(body.rows, body.columns));
  result.rules.workspace_bytes = result.rules.cuda_workspace_bytes = body.PartialBytes();
  std::vector<int64_t> streams;
  for (uint32_t draw = 0; draw < body.Draws(); ++draw) streams.push_back(StreamOf(draw));
  if (!streams.empty()) result.attributes.Add("streams", streams);
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

// Sums over rows that are added to what is there, beside one that is not. Of a type of 16 bits they are of
// whole numbers: what is rounded before it is added may not be rounded otherwise than in f64.
Case SumsBegun(int64_t rows, int64_t columns, DType dtype, bool with_rows) {
  ClusterMaker maker(rows, columns);
  const uint32_t dy = maker.Wide(maker.Whole(dtype)), x = maker.Whole(DType::kF32);
  const uint32_t product = maker.Of(Elementwise::kMul, {dy, x});
  maker.OverRows(product, DType::kF32);
  maker.OverRows(ReductionKind::kSum, x, dtype);
  maker.OverRows(maker.Of(Elementwise::kSign, {x}), dtype);
  if (with_rows) maker.Output(product, dtype);
  return CaseOf(maker, fmt::format("sums begun {}{}", Name(dtype), with_rows ? " and rows" : ""));
}

// Of each kind, over columns and over rows; sums may cancel.
Case Reductions(int64_t rows, int64_t columns, DType dtype) {
  ClusterMaker maker(rows, columns);
  const uint32_t x = maker.Whole(dtype);
  for (const ReductionKind kind : {ReductionKind::kSum, ReductionKind::kMax, ReductionKind::kMin}) {
    maker.Output(maker.Reduce(kind, x), false);
    maker.OverRows(kind, x, dtype);
  }
  Case result = CaseOf(maker, fmt::format("reductions {}", Name(dtype)));
  result.rules.magnitude = 2;
  return result;
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

// Numbers of elements: of whole rows, of repeated ones, one a row.
Case Iotas(int64_t rows, int64_t columns) {
  ClusterMaker maker(rows, columns);
  const uint32_t x = maker.Whole(DType::kI32);
  const uint32_t of_row = maker.Iota(1, true);
  const uint32_t is_first =
      maker.Of(Elementwise::kLe, {of_row, maker.Reduce(ReductionKind::kMin, x)}, {}, DType::kU8);
  maker.Output(maker.Of(Elementwise::kSelect, {is_first, maker.Iota(rows, true), x}, {}, DType::kI32));
  maker.Output(maker.Iota(rows, false), false);
  return CaseOf(maker, "iotas", 50);
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

// i64, in sums of both kinds too.
Case Longs(int64_t rows, int64_t columns) {
  ClusterMaker maker(rows, columns);
  const uint32_t a = maker.Whole(DType::kI64), b = maker.Input(DType::kI64, 1, true),
                 x = maker.Whole(DType::kF32);
  const auto of = [&](Elementwise function, Values operands) {
    return maker.Of(function, std::move(operands), {}, DType::kI64);
  };
  const uint32_t product = of(Elementwise::kMul, {a, b});
  const uint32_t most = maker.Reduce(ReductionKind::kMax, product);
  maker.Output(of(Elementwise::kSub, {most, maker.Convert(x, DType::kI64)}));
  maker.Output(maker.Reduce(ReductionKind::kSum, a), false);
  maker.Output(maker.Convert(product, DType::kF32));
  maker.OverRows(ReductionKind::kSum, product, DType::kI64);
  maker.OverRows(ReductionKind::kMin, a, DType::kI64);
  maker.OverRows(ReductionKind::kSum, x, DType::kF32);
  return CaseOf(maker, "i64", 50);
}

// Halves of rows turned, as rotary embeddings do: read and written in parts of one tensor.
Case Turned(int64_t rows, int64_t columns, DType dtype) {
  ClusterMaker maker(rows, columns);
  ClusterBody::Place half = {.steps = {{1, rows, 2 * columns}}, .column_stride = 1};
  const uint32_t a = maker.Input(dtype, 2 * rows * columns, half);
  half.begin = columns;
  const uint32_t b = maker.Read(0, half), angle = maker.Input(DType::kF32, 1, true);
  const uint32_t x = maker.Wide(a), y = maker.Wide(b), c = maker.Of(Elementwise::kCos, {angle}),
                 s = maker.Of(Elementwise::kSin, {angle});
  const auto product = [&](uint32_t p, uint32_t q) { return maker.Of(Elementwise::kMul, {p, q}); };
  const uint32_t first = maker.Of(Elementwise::kSub, {product(x, c), product(y, s)});
  const uint32_t second = maker.Of(Elementwise::kAdd, {product(x, s), product(y, c)});
  maker.Halves(maker.Convert(first, dtype), maker.Convert(second, dtype));
  return CaseOf(maker, fmt::format("turned {}", Name(dtype)));
}

// Rows whose halves are computed on side by side, as those of a norm before a rotary embedding. What is added
// to is of whole numbers in 16 bits, as above.
Case Halved(int64_t rows, int64_t columns, DType dtype) {
  ClusterMaker maker(rows, columns);
  ClusterBody::Place half = {.steps = {{1, rows, 2 * columns}}, .column_stride = 1};
  const uint32_t a = maker.Input(dtype, 2 * rows * columns, half);
  half.begin = columns;
  const uint32_t b = maker.Read(0, half);
  const uint32_t x = maker.Wide(a), y = maker.Wide(b);
  const auto of = [&](Elementwise function, Values operands) {
    return maker.Of(function, std::move(operands));
  };
  const uint32_t squares =
      of(Elementwise::kAdd, {of(Elementwise::kMul, {x, x}), of(Elementwise::kMul, {y, y})});
  const uint32_t mean =
      maker.Of(Elementwise::kScale, {maker.Reduce(ReductionKind::kSum, squares)}, {1.0 / (2 << 12)});
  const uint32_t first = of(Elementwise::kMul, {x, mean}), second = of(Elementwise::kMul, {y, mean});
  maker.Halves(maker.Convert(first, dtype), maker.Convert(second, dtype));
  maker.HalvesOverRows(first, second, DType::kF32, true);
  maker.HalvesOverRows(of(Elementwise::kSign, {y}), of(Elementwise::kSign, {x}), dtype, true);
  maker.HalvesOverRows(x, y, dtype, false);
  return CaseOf(maker, fmt::format("halved {}", Name(dtype)));
}

// Dimensions in the middle that repeat, a transposed tensor, every third column.
Case Strided(DType dtype) {
  constexpr int64_t kA = 3, kB = 4, kC = 70;
  ClusterMaker maker(kA * kB, kC);
  const uint32_t x = maker.Whole(dtype);
  const uint32_t middle = maker.Input(dtype, kA * kC, {.steps = {{kB, kA, kC}}, .column_stride = 1});
  const uint32_t transposed =
      maker.Input(dtype, kA * kB * kC, {.steps = {{1, kB, 1}, {kB, kA, kB * kC}}, .column_stride = kB});
  const uint32_t third = maker.Input(dtype, 3 * kC, {.begin = 2, .steps = {}, .column_stride = 3});
  const uint32_t sum = maker.Of(Elementwise::kAdd, {maker.Wide(x), maker.Wide(middle)});
  const uint32_t more = maker.Of(Elementwise::kMul, {maker.Wide(transposed), maker.Wide(third)});
  const uint32_t all = maker.Of(Elementwise::kAdd, {sum, more});
  maker.Output(all, dtype);
  maker.Output(maker.Reduce(ReductionKind::kSum, all), false);
  return CaseOf(maker, fmt::format("strided {}", Name(dtype)));
}

// To the last bit: of whole rows, of repeated ones, one a row and one for all, from two streams.
Case RandomBits(int64_t rows, int64_t columns, int64_t last = 0) {
  ClusterMaker maker(rows, columns);
  if (last != 0) maker.Space(rows, columns, last);
  const uint32_t state = maker.State();
  maker.Output(maker.RandomBits(state, rows, true, 0));
  maker.Output(maker.RandomBits(state, rows, true, 1));
  if (last == 0) maker.Output(maker.RandomBits(state, rows % 3 == 0 ? rows / 3 : 1, true, 0));
  if (last == 0 && columns != 1) maker.Output(maker.RandomBits(state, rows, false, 1), false);
  maker.Output(maker.RandomBits(state, 1, columns == 1, 2), last != 0 || columns == 1);
  return CaseOf(maker, "random bits");
}

// As the body of ft.dropout; what is dropped is 0, whatever it was.
Case Dropout(int64_t rows, int64_t columns, double rate, DType dtype) {
  ClusterMaker maker(rows, columns);
  const uint32_t x = maker.Whole(dtype), state = maker.State(), wide = maker.Wide(x);
  const auto integer = [&](Elementwise function, uint32_t value, double number) {
    return maker.Of(function, {value}, {number}, DType::kI32);
  };
  const uint32_t upper = integer(Elementwise::kFloorDiv, maker.RandomBits(state, rows, true, 0), 256);
  const uint32_t bits = integer(Elementwise::kRemainder, upper, 0x1p24);
  const uint32_t u = maker.Of(Elementwise::kScale, {maker.Convert(bits, DType::kF32)}, {0x1p-24});
  const uint32_t keep =
      maker.Of(Elementwise::kGe, {u, maker.Fill(std::ceil(rate * 0x1p24) * 0x1p-24)}, {}, DType::kU8);
  const double factor = static_cast<float>(1 / (1 - rate));
  maker.Output(
      maker.Of(Elementwise::kSelect, {keep, maker.Of(Elementwise::kScale, {wide}, {factor}), maker.Fill(0)}),
      dtype);
  return CaseOf(maker, fmt::format("dropout {} rate {}", Name(dtype), rate));
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
      for (const bool with_rows : {false, true}) cases.push_back(SumsBegun(rows, columns, dtype, with_rows));
    }
    cases.push_back(OverRows(1100, 3, dtype));
    cases.push_back(SumsBegun(1100, 3, dtype, true));
    for (const auto& [rows, last] : {std::pair<int64_t, int64_t>{1, 1}, {1, 63}, {40, 64}, {40, 5}})
      cases.push_back(Flat(rows, last, dtype));
  }
  for (const auto& [rows, columns] : shapes) cases.push_back(Integers(rows, columns));
  for (const auto& [rows, columns] : shapes) cases.push_back(RandomBits(rows, columns));
  for (const auto& [rows, columns] : shapes)
    if (columns > 1) cases.push_back(Iotas(rows, columns));
  for (const auto& [rows, columns] : shapes) cases.push_back(Longs(rows, columns));
  for (const DType dtype : kFloats) {
    for (const auto& [rows, columns] : shapes) {
      cases.push_back(Turned(rows, columns, dtype));
      cases.push_back(Halved(rows, columns, dtype));
    }
    cases.push_back(Strided(dtype));
  }
  for (const int64_t last : {1, 6, 63}) cases.push_back(RandomBits(40, kClusterLanes, last));
  for (const DType dtype : kFloats)
    for (const double rate : {0.0, 0.1, 0.5, 0.9}) cases.push_back(Dropout(21, 771, rate, dtype));
  for (const int64_t period : {1, 4, 12}) cases.push_back(Repeated(24, 70, period));
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kI32, DType::kI64})
    for (const auto& [rows, columns] : shapes) cases.push_back(Reductions(rows, columns, dtype));
  for (Case& c : PrimitiveCases()) cases.push_back(std::move(c));
  for (Case& c : LogitCases()) cases.push_back(std::move(c));
  return cases;
}

}  // namespace ft::conformance
