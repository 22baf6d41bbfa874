#include "compiler/codegen/x86/cluster_kernel.h"

#include "compiler/codegen/body_values.h"
#include "compiler/codegen/kernel_builder.h"
#include "compiler/codegen/lane_vectors.h"
#include "compiler/codegen/reduction.h"
#include "compiler/codegen/x86/places.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace ft::compiler {
namespace {

using namespace mlir;

constexpr int64_t kVectors = kLanes / kVector;

Instructions instructionsOf(X86Level level) {
  bool hasV3 = level != X86Level::V2;
  return {.fma = hasV3, .f16 = hasV3, .bf16 = false};
}

class ClusterKernel {
public:
  ClusterKernel(MLIRContext &context, func::FuncOp body, const Space &space, X86Level level)
      : b(UnknownLoc::get(&context), &context, instructionsOf(level)), body(body), space(space),
        values(b, body, space, kVector), inputs(body.getNumArguments()), partials(partialResultsOf(body)),
        partialAddresses(partials.size()) {
    numOperands = inputs + body.front().getTerminator()->getNumOperands() + partials.size();
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
      alike = arith::MinSIOp::create(b, b.getLoc(), end, b.number(count - 1));
    b.loop(begin, alike, 1, {}, [&](Value index, ArrayRef<Lanes>) {
      step(index, false);
      return Vectors();
    });
    if (differentLast) {
      Value reached = arith::CmpIOp::create(b, b.getLoc(), arith::CmpIPredicate::eq, end, b.number(count));
      Value asked = arith::CmpIOp::create(b, b.getLoc(), arith::CmpIPredicate::slt, begin, end);
      b.when(arith::AndIOp::create(b, b.getLoc(), reached, asked), [&] { step(b.number(count - 1), true); });
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

  // Steps of 64 columns, and what is left of them.
  Vectors eachColumns(int64_t columns, Vectors carried, ColumnStep step) {
    int64_t whole = columns / kLanes * kLanes;
    if (whole != 0)
      carried = b.loop(b.number(0), b.number(whole), kLanes, carried,
                       [&](Value column, ArrayRef<Lanes> values) { return step(column, kLanes, values); });
    if (whole != columns)
      carried = step(b.number(whole), columns - whole, carried);
    return carried;
  }

  // The vectors of a step: their first columns and how many they have.
  void eachVector(Value column, int64_t count, llvm::function_ref<void(int64_t, Value, int64_t)> visit) {
    for (int64_t i = 0; i * kVector < count; ++i)
      visit(i, b.plus(column, i * kVector), std::min(kVector, count - i * kVector));
  }

  void emitRow(Value index, int64_t columns);
  void emitReductions(unsigned level, int64_t columns);
  void emitResults(int64_t columns);
  void clearPartials();
  void emitCombination(Value chunk, int64_t columns);
  Value rowAddress(Value base, Layout layout, Type element);
  Lanes vectorOf(Value value, Value column, int64_t count, LanesOf &known);

  KernelBuilder b;
  func::FuncOp body;
  const Space &space;
  BodyValues values;
  unsigned inputs, numOperands;
  llvm::SmallVector<PartialResult> partials;
  llvm::SmallVector<Value> pointers;
  // Of the row that is being emitted.
  Value row;
  llvm::SmallVector<Value> partialAddresses; // of its block
  llvm::DenseMap<Value, Value> rowAddresses; // of arguments with columns
};

Value ClusterKernel::rowAddress(Value base, Layout layout, Type element) {
  if (layout.rows == 1)
    return base;
  Value index = layout.rows == space.rows() ? row : b.rest(row, layout.rows);
  return elementAddress(b, base, layout.columns ? b.times(index, space.columns()) : index, element);
}

// 16 columns of a value, or `count` of them.
Lanes ClusterKernel::vectorOf(Value value, Value column, int64_t count, LanesOf &known) {
  return values.vectorOf(value, known, [&](BlockArgument argument) {
    Value address = elementAddress(b, rowAddresses.lookup(argument), column, elementOf(argument));
    return loadVector(b, address, elementOf(argument), count);
  });
}

void ClusterKernel::emitReductions(unsigned level, int64_t columns) {
  ArrayRef<mlir::ft::ReduceOp> reductions = space.reductions(level);
  Vectors sums;
  for (mlir::ft::ReduceOp op : reductions) {
    Lanes zero = zeros(b, kVector, registerType(b, elementOf(op.getX())));
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
    values.set(op.getResult(), roundTo(elementOf(op), result));
  }
}

// At the first row of a block.
void ClusterKernel::clearPartials() {
  Value isFirst = arith::CmpIOp::create(b, b.getLoc(), arith::CmpIPredicate::eq,
                                        b.rest(row, space.blockRows()), b.number(0));
  b.when(isFirst, [&] {
    eachColumns(space.columns(), {}, [&](Value column, int64_t count, ArrayRef<Lanes>) {
      eachVector(column, count, [&](int64_t, Value at, int64_t lanes) {
        for (auto [partial, base] : llvm::zip(partials, partialAddresses)) {
          Type element = registerType(b, elementOf(partial.reduction.operand));
          storeVector(identityOf(partial.reduction.kind, zeros(b, kVector, element)),
                      elementAddress(b, base, at, element), element, lanes);
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
      for (auto [partial, base] : llvm::zip(partials, partialAddresses)) {
        Lanes value = known.lookup(partial.reduction.operand);
        Type element = registerType(b, elementOf(partial.reduction.operand));
        Value address = elementAddress(b, base, at, element);
        Lanes sum = combined(partial.reduction.kind, loadVector(b, address, element, lanes), value);
        storeVector(sum, address, element, lanes);
      }
    });
    return Vectors();
  });
  for (auto [i, value] : llvm::enumerate(terminator->getOperands()))
    if (!asColumnReduction(value) && !space.layout(value).columns)
      storeScalar(values.get(value), rowAddress(pointers[inputs + i], space.layout(value), elementOf(value)),
                  elementOf(value));
}

void ClusterKernel::emitRow(Value index, int64_t columns) {
  row = index;
  values.clear();
  rowAddresses.clear();
  for (BlockArgument argument : body.getArguments()) {
    Layout layout = space.layout(argument);
    Value address = rowAddress(pointers[argument.getArgNumber()], layout, elementOf(argument));
    if (layout.columns)
      rowAddresses[argument] = address;
    else
      values.set(argument, loadScalar(b, address, elementOf(argument)));
  }
  if (!partials.empty()) {
    Value block = b.times(b.quotient(row, space.blockRows()), space.columns());
    for (auto [partial, base] : llvm::zip(partials, partialAddresses))
      base = elementAddress(b, pointers[partial.partial], block,
                            registerType(b, elementOf(partial.reduction.operand)));
    clearPartials();
  }
  values.evaluateScalars(0);
  for (unsigned level = 0; level + 1 < space.numLevels(); ++level) {
    emitReductions(level, columns);
    values.evaluateScalars(level + 1);
  }
  emitResults(columns);
}

// Blocks one after the other.
void ClusterKernel::emitCombination(Value chunk, int64_t columns) {
  Value column = b.times(chunk, kLanes);
  for (const PartialResult &partial : partials) {
    Type element = registerType(b, elementOf(partial.reduction.operand));
    llvm::StringRef kind = partial.reduction.kind;
    eachVector(column, columns, [&](int64_t, Value at, int64_t lanes) {
      Value first = elementAddress(b, pointers[partial.partial], at, element);
      Lanes sum = loadVector(b, first, element, lanes);
      sum = b.loop(b.number(1), b.number(space.blocks()), 1, sum, [&](Value block, ArrayRef<Lanes> carried) {
        Value address = elementAddress(b, first, b.times(block, space.columns()), element);
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
