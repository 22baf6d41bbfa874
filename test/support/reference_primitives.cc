// The primitives in float64: elementwise rows by their expressions, the others by their definitions.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "dialects/ft/elementwise.h"
#include "runtime/base/philox.h"
#include "test/support/elementwise_f64.h"
#include "test/support/reference_ops.h"

namespace mlir::ft::test {
namespace {

using Places = std::vector<int64_t>;

// The index of an element in each dimension, and back.
Places placesOf(int64_t element, llvm::ArrayRef<int64_t> shape) {
  Places places(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    places[i] = element % shape[i];
    element /= shape[i];
  }
  return places;
}

int64_t elementAt(const Places& places, llvm::ArrayRef<int64_t> shape) {
  int64_t element = 0;
  for (size_t i = 0; i < shape.size(); ++i) element = element * shape[i] + places[i];
  return element;
}

// result[places] = x[from(places)].
template <typename Function>
void gather(OpEvaluation& e, const Function& from) {
  for (int64_t i = 0; i < e.out[0].size(); ++i)
    e.out[0].data[i] = e.in[0]->data[elementAt(from(placesOf(i, e.out[0].shape)), e.in[0]->shape)];
}

OpFunction elementwise(const ElementwiseRow& row) {
  return [&row](OpEvaluation& e) {
    double parameters[2] = {};
    for (int i = 0; i < row.num_parameters(); ++i) parameters[i] = elementwise::parameter(row, e.op, i);
    for (int64_t i = 0; i < e.out[0].size(); ++i) {
      double operands[::ft::kMaxElementwiseOperands] = {};
      for (size_t k = 0; k < e.in.size(); ++k) operands[k] = e.in[k]->data[i % e.in[k]->size()];
      e.out[0].data[i] = ::ft::test::EvaluateElementwise(row.kind, operands, parameters);
    }
  };
}

void convert(OpEvaluation& e) {
  Type element = cast<RankedTensorType>(e.op->getResult(0).getType()).getElementType();
  for (int64_t i = 0; i < e.out[0].size(); ++i) {
    double x = e.in[0]->data[i];
    e.out[0].data[i] = isa<FloatType>(element) ? x : element.isInteger(1) ? double(x != 0) : std::trunc(x);
  }
}

void broadcast(OpEvaluation& e) {
  gather(e, [&](Places places) {
    const auto& shape = e.in[0]->shape;
    places.erase(places.begin(), places.end() - static_cast<int64_t>(shape.size()));
    for (size_t i = 0; i < shape.size(); ++i) places[i] = shape[i] == 1 ? 0 : places[i];
    return places;
  });
}

void reshape(OpEvaluation& e) { e.out[0].data = e.in[0]->data; }

void transpose(OpEvaluation& e) {
  gather(e, [&](const Places& places) {
    Places from(places.size());
    for (auto [to, dimension] : llvm::enumerate(cast<TransposeOp>(e.op).getPermutation()))
      from[dimension] = places[to];
    return from;
  });
}

void slice(OpEvaluation& e) {
  gather(e, [&](Places places) {
    for (auto [i, begin] : llvm::enumerate(cast<SliceOp>(e.op).getBegin())) places[i] += begin;
    return places;
  });
}

void pad(OpEvaluation& e) {
  for (int64_t i = 0; i < e.in[0]->size(); ++i) {
    Places places = placesOf(i, e.in[0]->shape);
    for (auto [d, low] : llvm::enumerate(cast<PadOp>(e.op).getLow())) places[d] += low;
    e.out[0].data[elementAt(places, e.out[0].shape)] = e.in[0]->data[i];
  }
}

void concat(OpEvaluation& e) {
  int64_t axis = cast<ConcatOp>(e.op).getAxis(), begin = 0;
  if (axis < 0) axis += static_cast<int64_t>(e.out[0].shape.size());
  for (const Array* part : e.in) {
    for (int64_t i = 0; i < part->size(); ++i) {
      Places places = placesOf(i, part->shape);
      places[axis] += begin;
      e.out[0].data[elementAt(places, e.out[0].shape)] = part->data[i];
    }
    begin += part->shape[axis];
  }
}

void reduce(OpEvaluation& e) {
  auto op = cast<ReduceOp>(e.op);
  bool sum = op.getKind() == "sum", max = op.getKind() == "max";
  e.out[0].data.assign(e.out[0].size(), sum ? 0 : max ? -INFINITY : INFINITY);
  for (int64_t i = 0; i < e.in[0]->size(); ++i) {
    Places kept;
    for (auto [d, place] : llvm::enumerate(placesOf(i, e.in[0]->shape)))
      if (!llvm::is_contained(op.getDims(), static_cast<int64_t>(d))) kept.push_back(place);
    double& result = e.out[0].data[elementAt(kept, e.out[0].shape)];
    double x = e.in[0]->data[i];
    result = sum ? result + x : max ? std::max(result, x) : std::min(result, x);
  }
}

void randomBits(OpEvaluation& e) {
  const Array& rng = *e.in[0];
  const auto stream = static_cast<uint32_t>(::ft::kFirstOpStream + cast<RandomBitsOp>(e.op).getStream());
  for (int64_t i = 0; i < e.out[0].size(); ++i) {
    const auto element = static_cast<uint64_t>(int64_t(rng.data[2]) * e.out[0].size() + i);
    e.out[0].data[i] =
        static_cast<int32_t>(::ft::Philox4x32(rng.data[0], stream, rng.data[1], element / 4)[element % 4]);
  }
}

void dot(OpEvaluation& e) {
  auto op = cast<DotOp>(e.op);
  size_t row = e.out[0].shape.size() - 2, column = row + 1;
  int64_t summed = e.in[0]->shape[op.getTransposeA() ? row : column];
  for (int64_t i = 0; i < e.out[0].size(); ++i) {
    Places places = placesOf(i, e.out[0].shape);
    for (int64_t k = 0; k < summed; ++k) {
      Places a = places, b = places;
      a[row] = op.getTransposeA() ? k : places[row];
      a[column] = op.getTransposeA() ? places[row] : k;
      b[row] = op.getTransposeB() ? places[column] : k;
      b[column] = op.getTransposeB() ? k : places[column];
      e.out[0].data[i] +=
          e.in[0]->data[elementAt(a, e.in[0]->shape)] * e.in[1]->data[elementAt(b, e.in[1]->shape)];
    }
  }
}

void gatherElements(OpEvaluation& e) {
  for (int64_t i = 0; i < e.out[0].size(); ++i)
    e.out[0].data[i] = e.in[0]->row(i / e.out[0].last())[int64_t(e.in[1]->data[i])];
}

void scatterAddElements(OpEvaluation& e) {
  for (int64_t i = 0; i < e.in[0]->size(); ++i)
    e.out[0].row(i / e.in[0]->last())[int64_t(e.in[1]->data[i])] += e.in[0]->data[i];
}

void cumsum(OpEvaluation& e) {
  bool reverse = cast<CumsumOp>(e.op).getReverse();
  int64_t columns = e.in[0]->last();
  for (int64_t row = 0; row < e.in[0]->rows(); ++row)
    for (int64_t i = 0; i < columns; ++i)
      for (int64_t j = reverse ? i : 0; j < (reverse ? columns : i + 1); ++j)
        e.out[0].row(row)[i] += e.in[0]->row(row)[j];
}

// Frozen at the base point, as all integers that are drawn from floats.
void argsort(OpEvaluation& e) {
  if (!e.frozen->data.empty()) {
    e.out[0] = *e.frozen;
    return;
  }
  bool descending = cast<ArgsortOp>(e.op).getDescending();
  for (int64_t row = 0; row < e.in[0]->rows(); ++row) {
    const double* x = e.in[0]->row(row);
    std::vector<int64_t> order(e.in[0]->last());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return descending ? x[a] > x[b] : x[a] < x[b]; });
    std::copy_n(order.begin(), e.out[0].last(), e.out[0].row(row));
  }
  *e.frozen = e.out[0];
}

void histogram(OpEvaluation& e) {
  for (double id : e.in[0]->data)
    if (id >= 0 && id < e.out[0].size()) ++e.out[0].data[int64_t(id)];
}

void groupedDot(OpEvaluation& e) {
  bool transposed = cast<GroupedDotOp>(e.op).getTransposeB();
  const Array &x = *e.in[0], &w = *e.in[1], &ends = *e.in[2];
  int64_t k = x.last(), n = e.out[0].last();
  for (int64_t row = 0; row < x.rows(); ++row) {
    int64_t group = 0;
    while (group < ends.size() && row >= ends.data[group]) ++group;
    if (group == ends.size()) continue;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t s = 0; s < k; ++s)
        e.out[0].row(row)[i] += x.row(row)[s] * w.data[group * k * n + (transposed ? i * k + s : s * n + i)];
  }
}

void softmax(OpEvaluation& e) {
  for (int64_t row = 0; row < e.in[0]->rows(); ++row) {
    const double* x = e.in[0]->row(row);
    double sum = 0;
    for (int64_t i = 0; i < e.in[0]->last(); ++i) sum += std::exp(x[i]);
    for (int64_t i = 0; i < e.in[0]->last(); ++i) e.out[0].row(row)[i] = std::exp(x[i]) / sum;
  }
}

void qkNorm(OpEvaluation& e) {
  double eps = cast<QkNormOp>(e.op).getEps().convertToDouble();
  int64_t size = e.in[1]->size();
  for (int64_t head = 0; head < e.in[0]->size() / size; ++head) {
    const double* x = e.in[0]->data.data() + head * size;
    double square = 0;
    for (int64_t i = 0; i < size; ++i) square += x[i] * x[i] / static_cast<double>(size);
    for (int64_t i = 0; i < size; ++i)
      e.out[0].data[head * size + i] = x[i] / std::sqrt(square + eps) * e.in[1]->data[i];
  }
}

}  // namespace

void addReferencePrimitives(std::map<std::string, OpFunction>& ops) {
  for (const ElementwiseRow& row : ::ft::kElementwiseRows) ops[std::string(row.name)] = elementwise(row);
  ops.insert({{"convert", convert},
              {"broadcast", broadcast},
              {"reshape", reshape},
              {"transpose", transpose},
              {"slice", slice},
              {"pad", pad},
              {"concat", concat},
              {"reduce", reduce},
              {"random_bits", randomBits},
              {"dot", dot},
              {"gather_elements", gatherElements},
              {"scatter_add_elements", scatterAddElements},
              {"cumsum", cumsum},
              {"argsort", argsort},
              {"histogram", histogram},
              {"grouped_dot", groupedDot},
              {"softmax", softmax},
              {"qk_norm", qkNorm}});
}

}  // namespace mlir::ft::test
