#include "compiler/codegen/x86/cluster_kernel.h"

#include "compiler/codegen/body_values.h"
#include "compiler/codegen/kernel_builder.h"
#include "compiler/codegen/lane_vectors.h"
#include "compiler/codegen/reduction.h"
#include "compiler/codegen/x86/kept_values.h"
#include "compiler/codegen/x86/places.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace ft::compiler {
namespace {

using namespace mlir;

constexpr int64_t kLanes = kClusterLanes, kVectors = kLanes / kVector;

Instructions instructionsOf(X86Level level) {
  bool hasV3 = level != X86Level::V2;
  return {.fma = hasV3, .f16 = hasV3, .bf16 = false, .wideProducts = true};
}

class ClusterKernel {
public:
  ClusterKernel(MLIRContext &context, const ClusterBody &body, X86Level level)
      : b(UnknownLoc::get(&context), &context, instructionsOf(level)), body(body), facts(body),
        values(b, facts, kVector), early(earlyResultsOf(facts)), kept(keptValuesOf(facts, early)),
        partials(partialOutputsOf(body)), partialAddresses(partials.size()) {}

  OwningOpRef<ModuleOp> build() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(b.getLoc());
    bool shortLast = body.last_columns != body.columns;
    entry(*module, "kernel", body.rows, shortLast, [&](Value index, bool last) {
      if (!goesByColumns())
        emitRow(index, last ? body.last_columns : body.columns);
    });
    int64_t chunks = (body.columns + kLanes - 1) / kLanes, rest = body.columns % kLanes;
    if (!partials.empty())
      entry(*module, "combine", chunks, rest != 0, [&](Value index, bool last) {
        if (goesByColumns())
          emitColumns(index, last ? rest : kLanes);
        else
          emitCombination(index, last ? rest : kLanes);
      });
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
    for (unsigned i = 0; i < operandsOf(body); ++i) {
      Type type = operands.getType();
      Value place = LLVM::GEPOp::create(b, b.getLoc(), type, type, operands,
                                        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
      pointers.push_back(LLVM::LoadOp::create(b, b.getLoc(), type, place));
    }
    values.readStates(pointers);
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

  // Sums over the rows of the only block, and nothing else.
  bool goesByColumns() const {
    return body.Blocks() == 1 && partials.size() == body.outputs.size() && facts.lastLevel == 0 &&
           body.last_columns == body.columns;
  }

  void beginRow(Value index);
  void emitRow(Value index, int64_t columns);
  void emitColumns(Value chunk, int64_t columns);
  void emitReductions(int level, int64_t columns);
  void emitResults(int64_t columns);
  BodyValues::LanesOf writtenBefore(int pass, Value column, int64_t count);
  void storeEarly(const BodyValues::LanesOf &known, Value column, int64_t count);
  bool isLate(size_t output) const;
  void keepColumns(const BodyValues::LanesOf &known, Value column, int64_t count);
  void storeColumns(BodyValues::LanesOf &known, Value column, int64_t count);
  void addPartials(BodyValues::LanesOf &known, Value column, int64_t count);
  void clearPartials();
  void emitCombination(Value chunk, int64_t columns);
  Value addressOfSum(const PartialOutput &partial, unsigned operand, Value column);
  Lanes resultOf(const PartialOutput &partial, Lanes sum, Value column, int64_t count);
  // Of the first column of the row in operand `operand`.
  Value rowAddress(unsigned operand, const ClusterBody::Place &place, DType element) {
    return elementAddress(b, pointers[operand], rowBegin(b, place, row, body.rows), element);
  }
  Value columnAddress(Value base, const ClusterBody::Place &place, Value column, DType element) {
    return elementAddress(b, base, b.times(column, place.column_stride), element);
  }
  Value outputAddress(size_t output, Value column) {
    return columnAddress(outputAddresses[output], body.outputs[output].place, column,
                         resultType(body.outputs[output]));
  }
  DType resultType(const ClusterBody::Output &output) const { return body.results[output.result].dtype; }
  Lanes vectorOf(uint32_t value, Value column, int64_t count, BodyValues::LanesOf &known);

  KernelBuilder b;
  const ClusterBody &body;
  BodyFacts facts;
  BodyValues values;
  llvm::SmallVector<EarlyResult> early;
  llvm::SmallVector<KeptValue> kept;
  llvm::SmallVector<PartialOutput> partials;
  llvm::SmallVector<Value> pointers;
  // Of the row that is being emitted.
  Value row;
  llvm::SmallVector<Value> partialAddresses; // of its block
  llvm::SmallVector<Value> rowAddresses;     // by read, of those with columns
  llvm::SmallVector<Value> outputAddresses;  // by output, of those that are not over rows
};

// 16 columns of a value, or `count` of them.
Lanes ClusterKernel::vectorOf(uint32_t value, Value column, int64_t count, BodyValues::LanesOf &known) {
  auto load = [&](uint32_t read) {
    const ClusterBody::Place &place = body.reads[read].place;
    Value address = columnAddress(rowAddresses[read], place, column, body.dtype(read));
    return loadVector(b, address, body.dtype(read), count, place.column_stride);
  };
  return values.vectorOf(value, known, {load, [&] { return row; }, [&] { return column; }});
}

void ClusterKernel::emitReductions(int level, int64_t columns) {
  llvm::SmallVector<uint32_t> reductions = facts.reductions(level);
  Vectors sums;
  for (uint32_t value : reductions) {
    Lanes zero = zeros(b, kVector, registerType(b, body.dtype(value)));
    sums.append(kVectors, identityOf(facts.op(value).reduction, zero));
  }
  sums = eachColumns(columns, sums, [&](Value column, int64_t count, ArrayRef<Lanes> carried) {
    Vectors next(carried);
    eachVector(column, count, [&](int64_t i, Value at, int64_t lanes) {
      BodyValues::LanesOf known = writtenBefore(level, at, lanes);
      for (auto [k, value] : llvm::enumerate(reductions)) {
        const ClusterBody::Op &op = facts.op(value);
        Lanes &sum = next[k * kVectors + i];
        Lanes with = combined(op.reduction, sum, vectorOf(op.operands[0], at, lanes, known));
        sum = firstLanes(lanes, with, sum);
      }
      if (level == 0)
        storeEarly(known, at, lanes);
      if (level + 1 == facts.lastLevel)
        keepColumns(known, at, lanes);
    });
    return next;
  });
  for (auto [k, value] : llvm::enumerate(reductions)) {
    Lanes result = joined(facts.op(value).reduction, ArrayRef(sums).slice(k * kVectors, kVectors));
    values.set(value, roundTo(body.dtype(value), result));
  }
}

// At the first row of a block.
void ClusterKernel::clearPartials() {
  Value isFirst = arith::CmpIOp::create(b, b.getLoc(), arith::CmpIPredicate::eq,
                                        b.rest(row, body.BlockRows()), b.number(0));
  b.when(isFirst, [&] {
    eachColumns(body.columns, {}, [&](Value column, int64_t count, ArrayRef<Lanes>) {
      eachVector(column, count, [&](int64_t, Value at, int64_t lanes) {
        for (auto [partial, base] : llvm::zip(partials, partialAddresses)) {
          DType element = accumulatorOf(partial.value);
          Lanes zero = zeros(b, kVector, registerType(b, element));
          storeVector(identityOf(partial.output->reduction, zero), elementAddress(b, base, at, element),
                      element, lanes);
        }
      });
      return Vectors();
    });
  });
}

BodyValues::LanesOf ClusterKernel::writtenBefore(int pass, Value column, int64_t count) {
  BodyValues::LanesOf known;
  for (const EarlyResult &result : early)
    if (result.passes[pass])
      known[result.value] =
          loadVector(b, outputAddress(result.output, column), resultType(body.outputs[result.output]), count);
  return known;
}

void ClusterKernel::storeEarly(const BodyValues::LanesOf &known, Value column, int64_t count) {
  for (const EarlyResult &result : early)
    storeVector(known.lookup(result.value), outputAddress(result.output, column),
                resultType(body.outputs[result.output]), count);
}

// Whether it is of columns and still to be written.
bool ClusterKernel::isLate(size_t output) const {
  return body.outputs[output].place.column_stride != 0 &&
         llvm::none_of(early, [&](const EarlyResult &result) { return result.output == output; });
}

void ClusterKernel::keepColumns(const BodyValues::LanesOf &known, Value column, int64_t count) {
  for (const KeptValue &keep : kept)
    storeVector(known.lookup(keep.value), outputAddress(keep.output, column), DType::kF32, count);
}

void ClusterKernel::storeColumns(BodyValues::LanesOf &known, Value column, int64_t count) {
  for (auto [i, output] : llvm::enumerate(body.outputs)) {
    if (output.over_rows || !isLate(i))
      continue;
    storeVector(known.lookup(output.value), outputAddress(i, column), resultType(output), count,
                output.place.column_stride);
  }
}

void ClusterKernel::addPartials(BodyValues::LanesOf &known, Value column, int64_t count) {
  for (auto [partial, base] : llvm::zip(partials, partialAddresses)) {
    DType element = accumulatorOf(partial.value);
    Value address = elementAddress(b, base, column, element);
    Lanes sum = combined(partial.output->reduction, loadVector(b, address, element, count),
                         known.lookup(partial.output->value));
    storeVector(sum, address, element, count);
  }
}

// All values of a vector are known before one is written, since a result may take the place of an input.
void ClusterKernel::emitResults(int64_t columns) {
  if (llvm::any_of(llvm::seq(body.outputs.size()), [&](size_t output) { return isLate(output); }))
    eachColumns(columns, {}, [&](Value column, int64_t count, ArrayRef<Lanes>) {
      eachVector(column, count, [&](int64_t, Value at, int64_t lanes) {
        BodyValues::LanesOf known = writtenBefore(facts.lastLevel, at, lanes);
        for (const KeptValue &keep : kept)
          known[keep.value] = loadVector(b, outputAddress(keep.output, at), DType::kF32, lanes);
        for (auto [i, output] : llvm::enumerate(body.outputs))
          if (isLate(i))
            vectorOf(output.value, at, lanes, known);
        storeColumns(known, at, lanes);
        addPartials(known, at, lanes);
      });
      return Vectors();
    });
  for (auto [i, output] : llvm::enumerate(body.outputs))
    if (output.place.column_stride == 0)
      storeScalar(values.get(output.value), outputAddresses[i], resultType(output));
}

void ClusterKernel::beginRow(Value index) {
  row = index;
  values.clear();
  rowAddresses.assign(body.reads.size(), Value());
  outputAddresses.assign(body.outputs.size(), Value());
  for (auto [i, read] : llvm::enumerate(body.reads)) {
    Value address = rowAddress(read.input, read.place, body.dtype(i));
    if (facts.columns[i])
      rowAddresses[i] = address;
    else
      values.set(i, loadScalar(b, address, body.dtype(i)));
  }
  values.evaluateScalars(0, [&] { return row; });
}

void ClusterKernel::emitRow(Value index, int64_t columns) {
  beginRow(index);
  for (auto [i, output] : llvm::enumerate(body.outputs))
    if (!output.over_rows)
      outputAddresses[i] = rowAddress(operandOfResult(body, output.result), output.place, resultType(output));
  if (!partials.empty()) {
    Value block = b.times(b.quotient(row, body.BlockRows()), body.columns);
    for (auto [partial, base] : llvm::zip(partials, partialAddresses))
      base = elementAddress(b, pointers[partial.operand], block, accumulatorOf(partial.value));
    clearPartials();
  }
  auto thisRow = [&] { return row; };
  for (int level = 0; level < facts.lastLevel; ++level) {
    emitReductions(level, columns);
    values.evaluateScalars(level + 1, thisRow);
  }
  emitResults(columns);
}

// In a result of an output over rows, or in what that is added to.
Value ClusterKernel::addressOfSum(const PartialOutput &partial, unsigned operand, Value column) {
  Value element = b.plus(column, b.number(partial.output->place.begin));
  return elementAddress(b, pointers[operand], element, partial.result);
}

// Of a sum over all rows, with what it is added to.
Lanes ClusterKernel::resultOf(const PartialOutput &partial, Lanes sum, Value column, int64_t count) {
  Lanes rounded = roundTo(partial.result, sum);
  if (partial.output->acc < 0)
    return rounded;
  Lanes before = loadVector(b, addressOfSum(partial, static_cast<unsigned>(partial.output->acc), column),
                            partial.result, count);
  return roundTo(partial.result, combined(ReductionKind::kSum, before, rounded));
}

// Rows one after the other.
void ClusterKernel::emitColumns(Value chunk, int64_t columns) {
  Value column = b.times(chunk, kLanes);
  Vectors sums; // of each vector those of all outputs
  eachVector(column, columns, [&](int64_t, Value, int64_t) {
    for (const PartialOutput &partial : partials) {
      Lanes zero = zeros(b, kVector, registerType(b, accumulatorOf(partial.value)));
      sums.push_back(identityOf(partial.output->reduction, zero));
    }
  });
  sums = b.loop(b.number(0), b.number(body.rows), 1, sums, [&](Value index, ArrayRef<Lanes> carried) {
    beginRow(index);
    Vectors next;
    eachVector(column, columns, [&](int64_t, Value at, int64_t lanes) {
      BodyValues::LanesOf known;
      for (const PartialOutput &partial : partials)
        next.push_back(combined(partial.output->reduction, carried[next.size()],
                                vectorOf(partial.output->value, at, lanes, known)));
    });
    return next;
  });
  eachVector(column, columns, [&](int64_t i, Value at, int64_t lanes) {
    for (auto [k, partial] : llvm::enumerate(partials)) {
      Value address = addressOfSum(partial, operandOfResult(body, partial.output->result), at);
      storeVector(resultOf(partial, sums[i * partials.size() + k], at, lanes), address, partial.result,
                  lanes);
    }
  });
}

// Blocks one after the other.
void ClusterKernel::emitCombination(Value chunk, int64_t columns) {
  Value column = b.times(chunk, kLanes);
  for (const PartialOutput &partial : partials) {
    DType element = accumulatorOf(partial.value);
    ReductionKind kind = partial.output->reduction;
    eachVector(column, columns, [&](int64_t, Value at, int64_t lanes) {
      Value first = elementAddress(b, pointers[partial.operand], at, element);
      Lanes sum = loadVector(b, first, element, lanes);
      sum = b.loop(b.number(1), b.number(body.Blocks()), 1, sum, [&](Value block, ArrayRef<Lanes> carried) {
        Value address = elementAddress(b, first, b.times(block, body.columns), element);
        return Vectors{combined(kind, carried[0], loadVector(b, address, element, lanes))};
      })[0];
      Value address = addressOfSum(partial, operandOfResult(body, partial.output->result), at);
      storeVector(resultOf(partial, sum, at, lanes), address, partial.result, lanes);
    });
  }
}

} // namespace

OwningOpRef<ModuleOp> buildClusterKernel(MLIRContext &context, const ClusterBody &body, X86Level level) {
  return ClusterKernel(context, body, level).build();
}

} // namespace ft::compiler
