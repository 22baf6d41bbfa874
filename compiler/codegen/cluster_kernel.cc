#include "compiler/codegen/cluster_kernel.h"

#include "compiler/codegen/reduction.h"
#include "dialects/ft/verify.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace ft::compiler {
namespace {

using namespace mlir;

constexpr int64_t kVectors = kLanes / kVector;

Type elementOf(Value value) { return mlir::ft::verify::tensor(value).getElementType(); }

using LanesOf = llvm::DenseMap<Value, Lanes>;

// A result that is reduced over rows, with where it goes.
struct PartialResult {
  ColumnReduction reduction;
  Value returned;
  unsigned result;  // operand of the kernel
  unsigned partial; // likewise
  Value address;    // of the partial results of the row's block
};

class ClusterKernel {
public:
  ClusterKernel(MLIRContext &context, func::FuncOp body, const Space &space, X86Level level)
      : b(UnknownLoc::get(&context), &context, level != X86Level::V2, level != X86Level::V2), body(body),
        space(space), inputs(body.getNumArguments()) {
    unsigned results = body.front().getTerminator()->getNumOperands(), partial = inputs + results;
    for (auto [index, value] : llvm::enumerate(body.front().getTerminator()->getOperands()))
      if (auto reduction = asColumnReduction(value))
        partials.push_back({*reduction, value, inputs + static_cast<unsigned>(index), partial++, {}});
    numOperands = partial;
  }

  OwningOpRef<ModuleOp> build() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(b.getLoc());
    bool shortLast = space.lastColumns() != space.columns();
    entry(*module, "kernel", space.rows(), shortLast,
          [&](Value index, bool last) { emitRow(index, last ? space.lastColumns() : space.columns()); });
    int64_t chunks = (space.columns() + kLanes - 1) / kLanes, rest = space.columns() % kLanes;
    if (!partials.empty())
      entry(*module, "combine", chunks, rest != 0,
            [&](Value index, bool last) { emitCombination(index, last ? rest : kLanes); });
    return module;
  }

private:
  using Step = llvm::function_ref<void(Value index, bool last)>;
  using Vectors = llvm::SmallVector<Lanes>;
  using ColumnStep = llvm::function_ref<Vectors(Value column, int64_t count, ArrayRef<Lanes> carried)>;

  // Integers of loops and addresses.
  Value number(int64_t n) { return arith::ConstantOp::create(b, b.getLoc(), b.getI64IntegerAttr(n)); }
  Value plus(Value a, int64_t n) {
    return n == 0 ? a : Value(arith::AddIOp::create(b, b.getLoc(), a, number(n)));
  }
  Value times(Value a, int64_t n) { return arith::MulIOp::create(b, b.getLoc(), a, number(n)); }
  Value rest(Value a, int64_t n) { return arith::RemUIOp::create(b, b.getLoc(), a, number(n)); }
  Value quotient(Value a, int64_t n) { return arith::DivUIOp::create(b, b.getLoc(), a, number(n)); }

  // step(i, false) for i in [begin, end), but step(i, true) for the last of all where that is another.
  void entry(ModuleOp module, llvm::StringRef name, int64_t count, bool differentLast, Step step) {
    b.setInsertionPointToEnd(module.getBody());
    Type pointer = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
    auto function = func::FuncOp::create(b, b.getLoc(), name, b.getFunctionType({pointer, i64, i64}, {}));
    Block *block = function.addEntryBlock();
    b.setInsertionPointToStart(block);
    readPointers(block->getArgument(0));
    Value begin = block->getArgument(1), end = block->getArgument(2);
    Value alike = end;
    if (differentLast)
      alike = arith::MinSIOp::create(b, b.getLoc(), end, number(count - 1));
    loop(begin, alike, 1, {}, [&](Value index, int64_t, ArrayRef<Lanes>) {
      step(index, false);
      return Vectors();
    });
    if (differentLast) {
      Value reached = arith::CmpIOp::create(b, b.getLoc(), arith::CmpIPredicate::eq, end, number(count));
      Value asked = arith::CmpIOp::create(b, b.getLoc(), arith::CmpIPredicate::slt, begin, end);
      when(arith::AndIOp::create(b, b.getLoc(), reached, asked), [&] { step(number(count - 1), true); });
    }
    func::ReturnOp::create(b, b.getLoc());
  }

  void readPointers(Value operands) {
    pointers.clear();
    for (unsigned i = 0; i < numOperands; ++i) {
      Type type = operands.getType();
      Value place = LLVM::GEPOp::create(b, b.getLoc(), type, type, operands,
                                        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
      pointers.push_back(LLVM::LoadOp::create(b, b.getLoc(), type, place));
    }
  }

  Vectors loop(Value begin, Value end, int64_t by, ArrayRef<Lanes> carried, ColumnStep step) {
    auto values = llvm::map_to_vector(carried, [](Lanes lanes) { return lanes.value; });
    auto loop = scf::ForOp::create(b, b.getLoc(), begin, end, number(by), values);
    auto lanes = [&](ValueRange range) {
      return llvm::map_to_vector(range, [&](Value value) { return Lanes{&b, value}; });
    };
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Vectors next = step(loop.getInductionVar(), by, lanes(loop.getRegionIterArgs()));
    if (!next.empty())
      scf::YieldOp::create(b, b.getLoc(), llvm::map_to_vector(next, [](Lanes one) { return one.value; }));
    return lanes(loop.getResults());
  }

  void when(Value condition, llvm::function_ref<void()> then) {
    auto branch = scf::IfOp::create(b, b.getLoc(), condition, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    then();
  }

  // Steps of 64 columns, and what is left of them.
  Vectors eachColumns(int64_t columns, Vectors carried, ColumnStep step) {
    int64_t whole = columns / kLanes * kLanes;
    if (whole != 0)
      carried = loop(number(0), number(whole), kLanes, carried, step);
    if (whole != columns)
      carried = step(number(whole), columns - whole, carried);
    return carried;
  }

  // The vectors of a step: their first columns and how many they have.
  void eachVector(Value column, int64_t count, llvm::function_ref<void(int64_t, Value, int64_t)> visit) {
    for (int64_t i = 0; i * kVector < count; ++i)
      visit(i, plus(column, i * kVector), std::min(kVector, count - i * kVector));
  }

  void emitRow(Value index, int64_t columns);
  void emitRowValues(unsigned level);
  void emitReductions(unsigned level, int64_t columns);
  void emitResults(int64_t columns);
  void clearPartials();
  void emitCombination(Value chunk, int64_t columns);
  Value rowAddress(Value base, Layout layout, Type element);
  Lanes vectorOf(Value value, Value column, int64_t count, LanesOf &known);
  Lanes fillOf(mlir::ft::FillOp op, bool isVector);
  Lanes evaluate(Operation *op, ArrayRef<Lanes> operands);

  LaneBuilder b;
  func::FuncOp body;
  const Space &space;
  unsigned inputs, numOperands;
  llvm::SmallVector<PartialResult> partials;
  llvm::SmallVector<Value> pointers;
  // Of the row that is being emitted.
  Value row;
  LanesOf rowValues;                         // one a row, or one for all: scalars
  llvm::DenseMap<Value, Value> rowAddresses; // of arguments with columns
};

Value ClusterKernel::rowAddress(Value base, Layout layout, Type element) {
  if (layout.rows == 1)
    return base;
  Value index = layout.rows == space.rows() ? row : rest(row, layout.rows);
  return elementAddress(b, base, layout.columns ? times(index, space.columns()) : index, element);
}

Lanes ClusterKernel::fillOf(mlir::ft::FillOp op, bool isVector) {
  Type type = registerType(b, elementOf(op));
  Value zero = arith::ConstantOp::create(
      b, b.getLoc(), b.getZeroAttr(isVector ? Type(VectorType::get({kVector}, type)) : type));
  return roundTo(elementOf(op), constant({&b, zero}, op.getValue().convertToDouble()));
}

Lanes ClusterKernel::evaluate(Operation *op, ArrayRef<Lanes> operands) {
  Type element = elementOf(op->getResult(0));
  if (const ElementwiseRow *row = elementwiseRowOf(op)) {
    llvm::SmallVector<double, 2> parameters;
    for (int i = 0; i < row->num_parameters(); ++i)
      parameters.push_back(mlir::ft::elementwise::parameter(*row, op, i));
    return roundTo(element, elementwiseValue(*row, operands, parameters));
  }
  if (isa<mlir::ft::ConvertOp, mlir::ft::CopyOp>(op))
    return roundTo(element, convertTo(element, operands[0]));
  return operands[0]; // moved
}

// 16 columns of a value, or `count` of them.
Lanes ClusterKernel::vectorOf(Value value, Value column, int64_t count, LanesOf &known) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  Lanes lanes;
  if (auto fill = value.getDefiningOp<mlir::ft::FillOp>()) {
    lanes = fillOf(fill, true);
  } else if (!space.layout(value).columns) {
    lanes = splat(rowValues.lookup(value));
  } else if (isa<BlockArgument>(value)) {
    Value address = elementAddress(b, rowAddresses.lookup(value), column, elementOf(value));
    lanes = loadVector(b, address, elementOf(value), count);
  } else {
    Operation *op = value.getDefiningOp();
    llvm::SmallVector<Lanes> operands;
    for (Value operand : op->getOperands())
      operands.push_back(vectorOf(operand, column, count, known));
    lanes = evaluate(op, operands);
  }
  known[value] = lanes;
  return lanes;
}

// Those without columns that are known after `level` passes, but for the reductions.
void ClusterKernel::emitRowValues(unsigned level) {
  for (Operation &op : body.front().without_terminator()) {
    Value result = op.getResult(0);
    if (space.level(result) != level || space.layout(result).columns || rowValues.contains(result) ||
        asColumnReduction(result))
      continue;
    if (auto fill = dyn_cast<mlir::ft::FillOp>(op)) {
      rowValues[result] = fillOf(fill, false);
      continue;
    }
    llvm::SmallVector<Lanes> operands;
    for (Value operand : op.getOperands()) {
      auto fill = operand.getDefiningOp<mlir::ft::FillOp>();
      operands.push_back(fill ? fillOf(fill, false) : rowValues.lookup(operand));
    }
    rowValues[result] = evaluate(&op, operands);
  }
}

void ClusterKernel::emitReductions(unsigned level, int64_t columns) {
  ArrayRef<mlir::ft::ReduceOp> reductions = space.reductions(level);
  Vectors sums;
  for (mlir::ft::ReduceOp op : reductions) {
    Type type = VectorType::get({kVector}, registerType(b, elementOf(op.getX())));
    Lanes zero = {&b, arith::ConstantOp::create(b, b.getLoc(), b.getZeroAttr(type))};
    sums.append(kVectors, identityOf(op.getKind(), zero));
  }
  sums = eachColumns(columns, sums, [&](Value column, int64_t count, ArrayRef<Lanes> carried) {
    Vectors next(carried);
    eachVector(column, count, [&](int64_t i, Value at, int64_t lanes) {
      LanesOf known;
      for (size_t k = 0; k < reductions.size(); ++k) {
        mlir::ft::ReduceOp op = reductions[k];
        Lanes &sum = next[k * kVectors + i];
        sum = firstLanes(lanes, combined(op.getKind(), sum, vectorOf(op.getX(), at, lanes, known)), sum);
      }
    });
    return next;
  });
  for (size_t k = 0; k < reductions.size(); ++k) {
    mlir::ft::ReduceOp op = reductions[k];
    Lanes result = joined(op.getKind(), ArrayRef(sums).slice(k * kVectors, kVectors));
    rowValues[op.getResult()] = roundTo(elementOf(op), result);
  }
}

// At the first row of a block.
void ClusterKernel::clearPartials() {
  Value isFirst =
      arith::CmpIOp::create(b, b.getLoc(), arith::CmpIPredicate::eq, rest(row, space.blockRows()), number(0));
  when(isFirst, [&] {
    eachColumns(space.columns(), {}, [&](Value column, int64_t count, ArrayRef<Lanes>) {
      eachVector(column, count, [&](int64_t, Value at, int64_t lanes) {
        for (const PartialResult &partial : partials) {
          Type element = registerType(b, elementOf(partial.reduction.operand));
          Value zero =
              arith::ConstantOp::create(b, b.getLoc(), b.getZeroAttr(VectorType::get({kVector}, element)));
          storeVector(identityOf(partial.reduction.kind, {&b, zero}),
                      elementAddress(b, partial.address, at, element), element, lanes);
        }
      });
      return Vectors();
    });
  });
}

// All values of a vector are known before one is written, since a result may take the place of an argument.
void ClusterKernel::emitResults(int64_t columns) {
  Operation *terminator = body.front().getTerminator();
  eachColumns(columns, {}, [&](Value column, int64_t count, ArrayRef<Lanes>) {
    eachVector(column, count, [&](int64_t, Value at, int64_t lanes) {
      LanesOf known;
      for (Value value : terminator->getOperands())
        if (!asColumnReduction(value) && space.layout(value).columns)
          vectorOf(value, at, lanes, known);
      for (const PartialResult &partial : partials)
        vectorOf(partial.reduction.operand, at, lanes, known);
      for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
        Layout layout = space.layout(value);
        if (asColumnReduction(value) || !layout.columns)
          continue;
        Type element = elementOf(value);
        Value base = rowAddress(pointers[inputs + i], layout, element);
        storeVector(known.lookup(value), elementAddress(b, base, at, element), element, lanes);
      }
      for (const PartialResult &partial : partials) {
        Lanes value = known.lookup(partial.reduction.operand);
        Type element = registerType(b, elementOf(partial.reduction.operand));
        Value address = elementAddress(b, partial.address, at, element);
        Lanes sum = combined(partial.reduction.kind, loadVector(b, address, element, lanes), value);
        storeVector(sum, address, element, lanes);
      }
    });
    return Vectors();
  });
  for (auto [i, value] : llvm::enumerate(terminator->getOperands()))
    if (!asColumnReduction(value) && !space.layout(value).columns)
      storeScalar(rowValues.lookup(value),
                  rowAddress(pointers[inputs + i], space.layout(value), elementOf(value)), elementOf(value));
}

void ClusterKernel::emitRow(Value index, int64_t columns) {
  row = index;
  rowValues.clear();
  rowAddresses.clear();
  for (BlockArgument argument : body.getArguments()) {
    Layout layout = space.layout(argument);
    Value address = rowAddress(pointers[argument.getArgNumber()], layout, elementOf(argument));
    if (layout.columns)
      rowAddresses[argument] = address;
    else
      rowValues[argument] = loadScalar(b, address, elementOf(argument));
  }
  if (!partials.empty()) {
    Value block = times(quotient(row, space.blockRows()), space.columns());
    for (PartialResult &partial : partials)
      partial.address = elementAddress(b, pointers[partial.partial], block,
                                       registerType(b, elementOf(partial.reduction.operand)));
    clearPartials();
  }
  emitRowValues(0);
  for (unsigned level = 0; level + 1 < space.numLevels(); ++level) {
    emitReductions(level, columns);
    emitRowValues(level + 1);
  }
  emitResults(columns);
}

// Blocks one after the other.
void ClusterKernel::emitCombination(Value chunk, int64_t columns) {
  Value column = times(chunk, kLanes);
  for (const PartialResult &partial : partials) {
    Type element = registerType(b, elementOf(partial.reduction.operand));
    llvm::StringRef kind = partial.reduction.kind;
    eachVector(column, columns, [&](int64_t, Value at, int64_t lanes) {
      Value first = elementAddress(b, pointers[partial.partial], at, element);
      Lanes sum = loadVector(b, first, element, lanes);
      sum =
          loop(number(1), number(space.blocks()), 1, sum, [&](Value block, int64_t, ArrayRef<Lanes> carried) {
            Value address = elementAddress(b, first, times(block, space.columns()), element);
            return Vectors{combined(kind, carried[0], loadVector(b, address, element, lanes))};
          })[0];
      Type result = elementOf(partial.returned);
      storeVector(roundTo(result, sum), elementAddress(b, pointers[partial.result], at, result), result,
                  lanes);
    });
  }
}

} // namespace

OwningOpRef<ModuleOp> buildClusterKernel(MLIRContext &context, func::FuncOp body, const Space &space,
                                         X86Level level) {
  return ClusterKernel(context, body, space, level).build();
}

} // namespace ft::compiler
