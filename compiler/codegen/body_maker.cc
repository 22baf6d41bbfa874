#include "compiler/codegen/body_maker.h"

#include "compiler/codegen/elements.h"
#include "dialects/ft/dialect.h"
#include "dialects/ft/elementwise.h"

namespace ft::compiler {

using namespace mlir;
using Op = ClusterBody::Op;

// Numbers of ops until reads, which come first, are all known.
static constexpr uint32_t kOps = 1U << 16;

// One row that is cut into rows of 64.
static void flatten(ClusterBody &body) {
  if (body.rows != 1)
    return;
  int64_t elements = body.columns;
  const ClusterBody before = body;
  body.columns = kClusterLanes;
  body.rows = (elements + kClusterLanes - 1) / kClusterLanes;
  body.last_columns = elements - (body.rows - 1) * kClusterLanes;
  auto cut = [&](ClusterBody::Place &place) {
    if (place.column_stride == 1)
      place.steps = body.Whole().steps;
  };
  for (ClusterBody::Read &read : body.reads)
    cut(read.place);
  for (Op &op : body.ops)
    cut(op.place);
  for (ClusterBody::Output &output : body.outputs)
    if (!output.over_rows)
      cut(output.place);
  if (!body.IsFlat())
    body = before;
}

ClusterBody BodyMaker::take() {
  auto final = [&](uint32_t number) {
    return number < kOps ? number : number - kOps + static_cast<uint32_t>(body.reads.size());
  };
  for (Op &op : body.ops)
    for (uint32_t &operand : op.operands)
      operand = op.kind == Op::Kind::kRandomBits ? operand : final(operand);
  for (ClusterBody::Output &output : body.outputs)
    output.value = final(output.value);
  flatten(body);
  return std::move(body);
}

uint32_t BodyMaker::read(uint32_t input, ClusterBody::Place place) {
  body.reads.push_back({input, std::move(place)});
  return static_cast<uint32_t>(body.reads.size() - 1);
}

uint32_t BodyMaker::add(Op op) {
  body.ops.push_back(std::move(op));
  return kOps + static_cast<uint32_t>(body.ops.size() - 1);
}

DType BodyMaker::dtypeOf(uint32_t number) const {
  return number < kOps ? body.inputs[body.reads[number].input].dtype : body.ops[number - kOps].dtype;
}

uint32_t BodyMaker::convertedTo(DType dtype, uint32_t x) {
  if (dtypeOf(x) == dtype)
    return x;
  return add({.kind = Op::Kind::kConvert, .operands = {x}, .parameters = {}, .dtype = dtype});
}

uint32_t BodyMaker::fill(double number, DType dtype) {
  return add({.kind = Op::Kind::kFill, .operands = {}, .parameters = {number}, .dtype = dtype});
}

uint32_t BodyMaker::iota(int64_t elements, ClusterBody::Place place) {
  return add({.kind = Op::Kind::kIota,
              .operands = {},
              .parameters = {},
              .dtype = DType::kI32,
              .elements = elements,
              .place = std::move(place)});
}

uint32_t BodyMaker::randomBits(uint32_t state, uint32_t draw, int64_t elements, ClusterBody::Place place) {
  return add({.kind = Op::Kind::kRandomBits,
              .operands = {state},
              .parameters = {},
              .dtype = DType::kI32,
              .draw = draw,
              .elements = elements,
              .place = std::move(place)});
}

uint32_t BodyMaker::computed(Operation *op, ArrayRef<uint32_t> operands) {
  DType dtype = compiler::dtypeOf(op->getResult(0));
  const ElementwiseRow *row = elementwiseRowOf(op);
  if (!row) // a conversion
    return convertedTo(dtype, operands[0]);
  Op made = {.function = row->kind, .operands = {operands.begin(), operands.end()}, .dtype = dtype};
  bool floats = IsFloat(compiler::dtypeOf(op->getOperands().back()));
  for (int i = 0; i < row->num_parameters(); ++i) { // in f32 for floats, as the kernels have them
    double number = mlir::ft::elementwise::parameter(*row, op, i);
    made.parameters.push_back(floats ? static_cast<float>(number) : number);
  }
  return add(std::move(made));
}

uint32_t BodyMaker::reduced(ReductionKind kind, ArrayRef<uint32_t> pieces, DType dtype) {
  Op made = {.kind = Op::Kind::kReduce, .reduction = kind, .dtype = dtypeOf(pieces[0])};
  if (made.dtype != dtype || (pieces.size() > 1 && IsFloat(dtype)))
    made.dtype = DType::kF32;
  uint32_t x = convertedTo(made.dtype, pieces[0]);
  // A lane combines what stands 64 columns further with what it has.
  for (uint32_t piece : pieces.drop_front())
    x = add({.function = combiningOf(kind),
             .operands = {x, convertedTo(made.dtype, piece)},
             .parameters = {},
             .dtype = made.dtype});
  made.operands = {x};
  return convertedTo(dtype, add(std::move(made)));
}

} // namespace ft::compiler
