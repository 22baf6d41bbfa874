#include "compiler/codegen/body_values.h"

#include "compiler/codegen/lane_vectors.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <algorithm>

namespace ft::compiler {

using namespace mlir;
using Op = ClusterBody::Op;

BodyFacts::BodyFacts(const ClusterBody &body)
    : body(body), columns(HasColumns(body)), levels(LevelsOf(body)) {
  lastLevel = levels.empty() ? 0 : *std::max_element(levels.begin(), levels.end());
}

llvm::SmallVector<uint32_t> BodyFacts::reductions(int level) const {
  llvm::SmallVector<uint32_t> values;
  for (uint32_t value = body.reads.size(); value < body.values(); ++value)
    if (op(value).kind == Op::Kind::kReduce && levels[value] == level + 1)
      values.push_back(value);
  return values;
}

bool BodyFacts::takesFunction(uint32_t value) const {
  return !isRead(value) && op(value).kind == Op::Kind::kElementwise && isElementary(op(value).function);
}

void BodyFacts::reach(uint32_t value, const Values &known, Values &reached) const {
  if (!columns[value] || known.contains(value) || !reached.insert(value).second || isRead(value))
    return;
  if (op(value).kind != Op::Kind::kRandomBits)
    for (uint32_t operand : op(value).operands)
      reach(operand, known, reached);
}

llvm::SmallVector<PartialOutput> partialOutputsOf(const ClusterBody &body) {
  auto operand = static_cast<unsigned>(body.inputs.size() + body.results.size());
  llvm::SmallVector<PartialOutput> partials;
  for (const ClusterBody::Output &output : body.outputs)
    if (output.over_rows)
      partials.push_back({&output, operand++, body.dtype(output.value), body.results[output.result].dtype});
  return partials;
}

unsigned operandsOf(const ClusterBody &body) {
  return static_cast<unsigned>(body.inputs.size() + body.results.size() + partialOutputsOf(body).size()) +
         body.Draws();
}

Value rowBegin(LaneBuilder &b, const ClusterBody::Place &place, Value row, int64_t rows) {
  Lanes zero = bitsConstant({&b, row}, 0), begin = bitsConstant(zero, place.begin);
  for (const ClusterBody::Place::Step &step : place.steps) {
    Lanes digit = {&b, row};
    if (step.every != 1)
      digit = {&b, arith::DivUIOp::create(b, b.getLoc(), digit.value, bitsConstant(zero, step.every).value)};
    if (step.every * step.extent < rows)
      digit = {&b, arith::RemUIOp::create(b, b.getLoc(), digit.value, bitsConstant(zero, step.extent).value)};
    begin = begin + digit * bitsConstant(zero, step.stride);
  }
  return begin.value;
}

void BodyValues::readStates(ArrayRef<Value> operands) {
  streams.clear();
  for (Value stream : operands.take_back(facts.body.Draws()))
    streams.push_back(LLVM::PtrToIntOp::create(b, b.getLoc(), b.getI64Type(), stream));
  for (auto [i, input] : llvm::enumerate(facts.body.inputs)) {
    if (!input.state)
      continue;
    auto number = [&, address = operands[i]](int32_t at) {
      Value place = LLVM::GEPOp::create(b, b.getLoc(), address.getType(), b.getI64Type(), address,
                                        ArrayRef<LLVM::GEPArg>{at});
      return LLVM::LoadOp::create(b, b.getLoc(), b.getI64Type(), place).getRes();
    };
    states[i] = {number(0), number(1), number(2), Value()};
  }
}

Lanes BodyValues::bitsOf(const Op &op, Value row, Value column) const {
  RandomKey key = states.lookup(op.operands[0]);
  key.stream = streams[op.draw];
  Lanes rank = {&b, key.rank};
  Lanes at = rank * bitsConstant(rank, op.elements) + Lanes{&b, rowBegin(b, op.place, row, facts.body.rows)};
  int64_t stride = op.place.column_stride;
  if (stride == 0)
    return randomBits(b, key, at.value, 0, false);
  at = at + Lanes{&b, column} * bitsConstant(at, stride);
  if (stride != 1) { // one by one
    Value bits = zeros(b, width, b.getI32Type()).value;
    for (int64_t i = 0; i < width; ++i)
      bits = insertLane(b, bits,
                        randomBits(b, key, (at + bitsConstant(at, i * stride)).value, 0, false).value, i);
    return {&b, bits};
  }
  auto isAligned = [](int64_t n) { return n % 4 == 0; };
  bool aligned = isAligned(op.elements) && isAligned(op.place.begin) &&
                 llvm::all_of(op.place.steps, [&](const auto &step) { return isAligned(step.stride); });
  return randomBits(b, key, at.value, width, aligned);
}

// Of an iota.
Lanes BodyValues::numbersOf(const Op &op, Value row, Value column) const {
  Lanes at = {&b, rowBegin(b, op.place, row, facts.body.rows)};
  int64_t stride = op.place.column_stride;
  if (stride == 0)
    return truncated(at, 32);
  at = truncated(at + Lanes{&b, column} * bitsConstant(at, stride), 32);
  auto steps = llvm::map_to_vector(llvm::seq<int64_t>(0, width),
                                   [&](int64_t lane) { return static_cast<int32_t>(lane * stride); });
  auto type = VectorType::get({width}, b.getI32Type());
  Value lanes =
      arith::ConstantOp::create(b, b.getLoc(), DenseElementsAttr::get(type, ArrayRef<int32_t>(steps)));
  return splat(at, width) + Lanes{&b, lanes};
}

Lanes BodyValues::fillOf(const Op &op, int64_t lanes) const {
  Lanes zero = zeros(b, lanes, registerType(b, op.dtype));
  return roundTo(op.dtype, constant(zero, op.parameters[0]));
}

Lanes BodyValues::evaluate(const Op &op, ArrayRef<Lanes> operands) const {
  if (op.kind == Op::Kind::kElementwise)
    return roundTo(op.dtype, elementwiseValue(RowOf(op.function), operands, op.parameters));
  return roundTo(op.dtype, convertTo(op.dtype, operands[0]));
}

Lanes BodyValues::vectorOf(uint32_t value, LanesOf &known, const BodyReader &reader) const {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  Lanes lanes;
  if (!facts.isRead(value) && facts.op(value).kind == Op::Kind::kFill) {
    lanes = fillOf(facts.op(value), width);
  } else if (!facts.columns[value]) {
    lanes = splat(rowValues.lookup(value), width);
  } else if (facts.isRead(value)) {
    lanes = reader.load(value);
  } else if (facts.op(value).kind == Op::Kind::kRandomBits) {
    lanes = bitsOf(facts.op(value), reader.row(), reader.column());
  } else if (facts.op(value).kind == Op::Kind::kIota) {
    lanes = numbersOf(facts.op(value), reader.row(), reader.column());
  } else {
    llvm::SmallVector<Lanes> operands;
    for (uint32_t operand : facts.op(value).operands)
      operands.push_back(vectorOf(operand, known, reader));
    lanes = evaluate(facts.op(value), operands);
  }
  known[value] = lanes;
  return lanes;
}

void BodyValues::evaluateScalars(int level, llvm::function_ref<Value()> row) {
  for (uint32_t value = facts.body.reads.size(); value < facts.body.values(); ++value) {
    if (facts.levels[value] != level || facts.columns[value] || rowValues.contains(value))
      continue;
    const Op &op = facts.op(value);
    if (op.kind == Op::Kind::kFill) {
      rowValues[value] = fillOf(op, 0);
    } else if (op.kind == Op::Kind::kRandomBits) {
      rowValues[value] = bitsOf(op, row(), Value());
    } else if (op.kind == Op::Kind::kIota) {
      rowValues[value] = numbersOf(op, row(), Value());
    } else {
      auto operands =
          llvm::map_to_vector(op.operands, [&](uint32_t operand) { return rowValues.lookup(operand); });
      rowValues[value] = evaluate(op, operands);
    }
  }
}

} // namespace ft::compiler
