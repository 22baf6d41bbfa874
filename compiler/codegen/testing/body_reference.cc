#include "compiler/codegen/testing/body_reference.h"

#include <cmath>
#include <numeric>

#include "compiler/codegen/testing/guarded_run.h"
#include "dialects/ft/elementwise.h"
#include "runtime/base/philox.h"
#include "test/support/elementwise_f64.h"

namespace ft::compiler::testing {
namespace {

using namespace mlir;

// Where element `index` of a tensor of shape `to` comes from: one of shape `from` that is repeated.
int64_t repeatedIndex(int64_t index, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  int64_t result = 0, stride = 1;
  for (size_t i = 1; i <= from.size(); ++i) {
    int64_t place = index % to[to.size() - i];
    index /= to[to.size() - i];
    result += (from[from.size() - i] == 1 ? 0 : place) * stride;
    stride *= from[from.size() - i];
  }
  return result;
}

// Where element `index` of a tensor of shape `from` goes to when `dims` are reduced.
int64_t reducedIndex(int64_t index, ArrayRef<int64_t> from, ArrayRef<int64_t> dims) {
  int64_t result = 0, stride = 1;
  for (size_t i = from.size(); i-- > 0;) {
    if (!llvm::is_contained(dims, static_cast<int64_t>(i))) {
      result += index % from[i] * stride;
      stride *= from[i];
    }
    index /= from[i];
  }
  return result;
}

// Where element `index` of a part is in the whole in which it begins at `begin`.
int64_t indexInWhole(int64_t index, ArrayRef<int64_t> part, ArrayRef<int64_t> begin,
                     ArrayRef<int64_t> whole) {
  int64_t result = 0, stride = 1;
  for (size_t i = part.size(); i-- > 0;) {
    result += (begin[i] + index % part[i]) * stride;
    index /= part[i];
    stride *= whole[i];
  }
  return result;
}

double convert(double x, Type element) {
  if (isa<FloatType>(element))
    return x;
  if (element.isInteger(1))
    return x != 0;
  return std::isnan(x) ? 0 : std::clamp(std::trunc(x), -0x1p31, 0x1p31 - 1);
}

struct Evaluation {
  Operation *op;
  std::vector<const HostTensor *> in;
  HostTensor out;

  void elementwise(const ElementwiseRow &row) {
    double parameters[2] = {};
    for (int i = 0; i < row.num_parameters(); ++i)
      parameters[i] = mlir::ft::elementwise::parameter(row, op, i);
    for (size_t i = 0; i < out.values.size(); ++i) {
      double operands[kMaxElementwiseOperands] = {};
      for (size_t k = 0; k < in.size(); ++k)
        operands[k] = in[k]->values[i % in[k]->values.size()];
      out.values[i] = ::ft::test::EvaluateElementwise(row.kind, operands, parameters);
      if (out.element().isInteger(32)) // wraps around
        out.values[i] = static_cast<int32_t>(static_cast<int64_t>(out.values[i]));
    }
  }

  void reduce(llvm::StringRef kind, ArrayRef<int64_t> dims) {
    std::vector<bool> seen(out.values.size());
    for (size_t i = 0; i < in[0]->values.size(); ++i) {
      int64_t at = reducedIndex(i, in[0]->type.getShape(), dims);
      double &sum = out.values[at], x = in[0]->values[i];
      bool larger = kind == "max" ? x > sum : x < sum;
      if (kind == "sum")
        sum += x;
      else if (!seen[at] || std::isnan(x) || (!std::isnan(sum) && larger))
        sum = x;
      seen[at] = true;
    }
  }

  void slice(ArrayRef<int64_t> begin) {
    for (size_t i = 0; i < out.values.size(); ++i)
      out.values[i] = in[0]->values[indexInWhole(i, out.type.getShape(), begin, in[0]->type.getShape())];
  }

  void concat(int64_t axis) {
    std::vector<int64_t> begin(out.type.getRank(), 0);
    axis += axis < 0 ? out.type.getRank() : 0;
    for (const HostTensor *part : in) {
      for (size_t i = 0; i < part->values.size(); ++i)
        out.values[indexInWhole(i, part->type.getShape(), begin, out.type.getShape())] = part->values[i];
      begin[axis] += part->type.getDimSize(axis);
    }
  }

  void draw(unsigned number) {
    const std::vector<double> &state = in[0]->values;
    for (size_t i = 0; i < out.values.size(); ++i) {
      uint64_t element = static_cast<uint64_t>(state[2]) * out.values.size() + i;
      PhiloxBlock block = Philox4x32(static_cast<uint64_t>(static_cast<int64_t>(state[0])), streamOf(number),
                                     static_cast<uint32_t>(state[1]), element / 4);
      out.values[i] = static_cast<int32_t>(block[element % 4]);
    }
  }

  void run() {
    if (auto bits = dyn_cast<mlir::ft::RandomBitsOp>(op))
      draw(bits.getStream());
    for (const ElementwiseRow &row : kElementwiseRows)
      if (op->getName().stripDialect() == llvm::StringRef(row.name))
        elementwise(row);
    if (auto fill = dyn_cast<mlir::ft::FillOp>(op))
      std::fill(out.values.begin(), out.values.end(), fill.getValue().convertToDouble());
    if (isa<mlir::ft::IotaOp>(op))
      std::iota(out.values.begin(), out.values.end(), 0);
    if (auto reduction = dyn_cast<mlir::ft::ReduceOp>(op))
      reduce(reduction.getKind(), reduction.getDims());
    if (auto part = dyn_cast<mlir::ft::SliceOp>(op))
      slice(part.getBegin());
    if (auto whole = dyn_cast<mlir::ft::ConcatOp>(op))
      concat(static_cast<int64_t>(whole.getAxis()));
    if (isa<mlir::ft::ReshapeOp, mlir::ft::CopyOp>(op))
      out.values = in[0]->values;
    for (size_t i = 0; i < out.values.size(); ++i) {
      if (isa<mlir::ft::BroadcastOp>(op))
        out.values[i] = in[0]->values[repeatedIndex(i, in[0]->type.getShape(), out.type.getShape())];
      if (isa<mlir::ft::ConvertOp>(op))
        out.values[i] = convert(in[0]->values[i], out.element());
      out.values[i] = rounded(out.values[i], out.element());
    }
  }
};

} // namespace

HostTensor evaluateOp(Operation *op, const std::vector<HostTensor> &operands) {
  Evaluation evaluation = {op, {}, HostTensor(cast<RankedTensorType>(op->getResult(0).getType()))};
  for (const HostTensor &operand : operands)
    evaluation.in.push_back(&operand);
  evaluation.run();
  return std::move(evaluation.out);
}

std::vector<HostTensor> evaluate(func::FuncOp body, const std::vector<HostTensor> &inputs,
                                 OpEvaluator evaluator) {
  std::vector<std::pair<Value, HostTensor>> values;
  for (auto [argument, input] : llvm::zip(body.getArguments(), inputs))
    values.emplace_back(argument, input);
  auto find = [&](ValueRange range) {
    std::vector<HostTensor> found;
    for (Value value : range)
      found.push_back(llvm::find_if(values, [&](auto &entry) { return entry.first == value; })->second);
    return found;
  };
  for (Operation &op : body.front().without_terminator())
    values.emplace_back(op.getResult(0), evaluator(&op, find(op.getOperands())));
  return find(body.front().getTerminator()->getOperands());
}

} // namespace ft::compiler::testing
