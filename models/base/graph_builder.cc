#include "models/base/graph_builder.h"

#include <cassert>
#include <numeric>
#include <utility>

#include "dialects/ft/composites.h"
#include "dialects/ft/facts.h"
#include "dialects/ft/signature.h"

namespace ft::models {
namespace {

using mlir::RankedTensorType;
using mlir::Value;

RankedTensorType typeOf(Value value) { return mlir::cast<RankedTensorType>(value.getType()); }

llvm::ArrayRef<int64_t> shapeOf(Value value) { return typeOf(value).getShape(); }

RankedTensorType f32(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, mlir::Float32Type::get(context));
}

RankedTensorType i32(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, mlir::IntegerType::get(context, 32));
}

mlir::Location nameLocation(mlir::MLIRContext &context, llvm::StringRef name) {
  return mlir::NameLoc::get(mlir::StringAttr::get(&context, name));
}

} // namespace

GraphBuilder::GraphBuilder(mlir::MLIRContext &context, const ModelName &name, llvm::StringRef basePrefix,
                           const ModelConfig &config)
    : module(mlir::ModuleOp::create(mlir::UnknownLoc::get(&context))), moduleBuilder(&context),
      builder(&context), location(mlir::UnknownLoc::get(&context)), batch(config.batch), seq(config.seq) {
  auto set = [&](llvm::StringRef attribute, mlir::Attribute value) { (*module)->setAttr(attribute, value); };
  set(mlir::ft::kModelAttr, builder.getStringAttr(name.model));
  set(mlir::ft::kPresetAttr, builder.getStringAttr(name.preset));
  set(mlir::ft::kBasePrefixAttr, builder.getStringAttr(basePrefix));
  set(mlir::ft::kBatchAttr, builder.getI64IntegerAttr(config.batch));
  if (config.seq > 0)
    set(mlir::ft::kSeqLenAttr, builder.getI64IntegerAttr(config.seq));
  if (config.vocab_size > 0)
    set(mlir::ft::kVocabSizeAttr, builder.getI64IntegerAttr(config.vocab_size));
  set(mlir::ft::kFactsAttr, mlir::ft::factsToAttr(&context, config));

  moduleBuilder.setInsertionPointToEnd(module->getBody());
  forward = mlir::func::FuncOp::create(moduleBuilder, location, mlir::ft::kForwardFunction,
                                       builder.getFunctionType({}, {}));
  moduleBuilder.setInsertionPoint(forward);
  builder.setInsertionPointToEnd(forward.addEntryBlock());
}

void GraphBuilder::enterLayer(llvm::StringRef name) { layer = builder.getStringAttr(name); }

Value GraphBuilder::input(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, mlir::Type element) {
  Value &known = inputs[name];
  if (!known) {
    auto type = RankedTensorType::get(shape, element ? element : builder.getI32Type());
    known = forward.getBody().front().addArgument(type, nameLocation(*builder.getContext(), name));
    inputNames.push_back(name.str());
  }
  return known;
}

Value GraphBuilder::tokens() { return input(mlir::ft::kTokensInput, {batch, seq}); }

Value GraphBuilder::targets() { return input(mlir::ft::kTargetsInput, {batch, seq}); }

Value GraphBuilder::positions(bool packed) {
  return packed ? input("positions", {batch, seq}) : named("positions", iota(seq));
}

Value GraphBuilder::segments() { return input("segments", {batch, seq}); }

Value GraphBuilder::classLabels(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> whole = {batch};
  whole.append(shape.begin(), shape.end());
  return convert(input("labels", whole, builder.getI64Type()), builder.getI32Type());
}

Value GraphBuilder::parameter(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, Init init) {
  mlir::MLIRContext *context = builder.getContext();
  auto symbol = mlir::ft::ParameterOp::create(
      moduleBuilder, location, builder.getStringAttr(name), mlir::TypeAttr::get(f32(context, shape)),
      mlir::ft::InitAttr::get(context, init.kind, init.value), layer,
      /*no_decay=*/shape.size() < 2 ? builder.getUnitAttr() : mlir::UnitAttr(), /*frozen=*/mlir::UnitAttr(),
      /*aliases=*/mlir::ArrayAttr(), /*stored_as=*/mlir::StringAttr(), /*rule=*/mlir::StringAttr(),
      /*unit=*/mlir::FlatSymbolRefAttr(),
      /*offset=*/mlir::IntegerAttr());
  bool isNew = parameters.try_emplace(name, symbol).second;
  assert(isNew && "a parameter is declared twice");
  (void)isNew;
  return read(name);
}

Value GraphBuilder::linear(const std::string &name, Value x, int64_t out, bool bias) {
  Value weight = parameter(name + ".weight", {out, shapeOf(x).back()}, Init::normal(kInitDeviation));
  Value added = bias ? parameter(name + ".bias", {out}, Init::constant(0)) : Value();
  return matmulTransposed(x, weight, added);
}

Value GraphBuilder::ownLayerNorm(const std::string &name, Value x, double eps) {
  int64_t width = shapeOf(x).back();
  Value weight = parameter(name + ".weight", {width}, Init::constant(1));
  return layerNorm(x, weight, parameter(name + ".bias", {width}, Init::constant(0)), eps);
}

Value GraphBuilder::read(llvm::StringRef name) {
  mlir::ft::ParameterOp symbol = parameters.lookup(name);
  assert(symbol && "a parameter is read before it is declared");
  return create<mlir::ft::GetOp>(symbol.getType(), mlir::FlatSymbolRefAttr::get(symbol.getSymNameAttr()));
}

void GraphBuilder::addAlias(llvm::StringRef name, llvm::StringRef alias) {
  mlir::ft::ParameterOp symbol = parameters.lookup(name);
  assert(symbol && "an alias is given to a parameter before it is declared");
  llvm::SmallVector<mlir::Attribute> aliases;
  if (symbol.getAliases())
    llvm::append_range(aliases, *symbol.getAliases());
  aliases.push_back(builder.getStringAttr(alias));
  symbol.setAliasesAttr(builder.getArrayAttr(aliases));
}

void GraphBuilder::storedAs(llvm::StringRef name, llvm::StringRef pattern) {
  mlir::ft::ParameterOp symbol = parameters.lookup(name);
  assert(symbol && "a parameter is given its place in files before it is declared");
  symbol.setStoredAsAttr(builder.getStringAttr(pattern));
}

Value GraphBuilder::named(llvm::StringRef name, Value value) {
  value.setLoc(nameLocation(*builder.getContext(), name));
  return value;
}

Value GraphBuilder::composite(llvm::StringRef name, mlir::ValueRange operands,
                              llvm::function_ref<Value(mlir::ValueRange)> body) {
  mlir::func::FuncOp &function = composites[name];
  if (!function) {
    mlir::OpBuilder::InsertionGuard guard(builder);
    mlir::StringAttr outside = std::exchange(layer, mlir::StringAttr());
    llvm::SmallVector<mlir::Type> types(operands.getTypes());
    function = mlir::func::FuncOp::create(moduleBuilder, location, name, builder.getFunctionType(types, {}));
    function.setPrivate();
    function->setAttr(mlir::ft::kCompositeAttr, builder.getUnitAttr());
    builder.setInsertionPointToEnd(function.addEntryBlock());
    Value result = body(function.getArguments());
    mlir::func::ReturnOp::create(builder, location, result);
    function.setFunctionType(builder.getFunctionType(types, result.getType()));
    layer = outside;
  }
  return create<mlir::ft::CallOp>(function.getFunctionType().getResults(), function.getSymName(), operands,
                                  mlir::DenseI64ArrayAttr(), mlir::DenseI64ArrayAttr())
      .getResult(0);
}

RankedTensorType GraphBuilder::withLast(Value x, int64_t extent) {
  llvm::SmallVector<int64_t> shape(shapeOf(x));
  shape.back() = extent;
  return f32(builder.getContext(), shape);
}

Value GraphBuilder::iota(int64_t count) {
  return create<mlir::ft::IotaOp>(i32(builder.getContext(), {count}));
}

Value GraphBuilder::rng() {
  if (!rngInput)
    rngInput =
        create<mlir::ft::InputOp>(RankedTensorType::get({3}, builder.getI64Type()), mlir::ft::kRngInput);
  return rngInput;
}

Value GraphBuilder::embedding(Value ids, Value table) {
  llvm::SmallVector<int64_t> shape(shapeOf(ids));
  shape.push_back(shapeOf(table).back());
  return create<mlir::ft::EmbeddingOp>(f32(builder.getContext(), shape), ids, table);
}

Value GraphBuilder::matmul(Value x, Value weight, Value bias) {
  return create<mlir::ft::MatmulOp>(withLast(x, shapeOf(weight)[1]), x, weight, bias, /*acc=*/Value(),
                                    /*transpose_a=*/false, /*transpose_b=*/false);
}

Value GraphBuilder::matmulTransposed(Value x, Value weight, Value bias) {
  return create<mlir::ft::MatmulOp>(withLast(x, shapeOf(weight)[0]), x, weight, bias, /*acc=*/Value(),
                                    /*transpose_a=*/false, /*transpose_b=*/true);
}

Value GraphBuilder::layerNorm(Value x, Value weight, Value bias, double eps) {
  return create<mlir::ft::LayerNormOp>(x.getType(), x, weight, bias, builder.getF64FloatAttr(eps));
}

Value GraphBuilder::rmsNorm(Value x, Value weight, double eps) {
  return create<mlir::ft::RmsNormOp>(x.getType(), x, weight, builder.getF64FloatAttr(eps));
}

Value GraphBuilder::add(Value a, Value b) { return map<mlir::ft::AddOp>({a, b}); }

Value GraphBuilder::scale(Value x, double factor) { return map<mlir::ft::ScaleOp>(x, factor); }

Value GraphBuilder::dropout(Value x, double rate) {
  if (rate == 0)
    return x;
  Value numbers = rng();
  return create<mlir::ft::DropoutOp>(x.getType(), x, numbers, builder.getF64FloatAttr(rate),
                                     builder.getI64IntegerAttr(nextDropoutStream++));
}

Value GraphBuilder::softmax(Value x) { return create<mlir::ft::SoftmaxOp>(x.getType(), x); }

Value GraphBuilder::qkNorm(Value x, Value weight, int64_t heads, double eps) {
  return create<mlir::ft::QkNormOp>(x.getType(), x, weight, builder.getI64IntegerAttr(heads),
                                    builder.getF64FloatAttr(eps));
}

Value GraphBuilder::broadcast(Value x, llvm::ArrayRef<int64_t> shape) {
  return create<mlir::ft::BroadcastOp>(typeOf(x).clone(shape), x);
}

Value GraphBuilder::reshape(Value x, llvm::ArrayRef<int64_t> shape) {
  return create<mlir::ft::ReshapeOp>(typeOf(x).clone(shape), x);
}

Value GraphBuilder::transpose(Value x, llvm::ArrayRef<int64_t> permutation) {
  llvm::SmallVector<int64_t> shape;
  for (int64_t from : permutation)
    shape.push_back(shapeOf(x)[from]);
  return create<mlir::ft::TransposeOp>(typeOf(x).clone(shape), x, permutation);
}

Value GraphBuilder::slice(Value x, llvm::ArrayRef<int64_t> begin, llvm::ArrayRef<int64_t> shape) {
  return create<mlir::ft::SliceOp>(typeOf(x).clone(shape), x, begin);
}

Value GraphBuilder::concat(mlir::ValueRange parts, int64_t axis) {
  llvm::SmallVector<int64_t> shape(shapeOf(parts[0]));
  for (Value part : parts.drop_front())
    shape[axis] += shapeOf(part)[axis];
  return create<mlir::ft::ConcatOp>(typeOf(parts[0]).clone(shape), parts, axis);
}

Value GraphBuilder::sum(Value x, llvm::ArrayRef<int64_t> dims) {
  llvm::SmallVector<int64_t> shape;
  for (auto [i, extent] : llvm::enumerate(shapeOf(x)))
    if (!llvm::is_contained(dims, static_cast<int64_t>(i)))
      shape.push_back(extent);
  return create<mlir::ft::ReduceOp>(typeOf(x).clone(shape), x, "sum", dims);
}

Value GraphBuilder::convert(Value x, mlir::Type element) {
  return create<mlir::ft::ConvertOp>(typeOf(x).clone(element), x);
}

Value GraphBuilder::toFloat(Value x) { return convert(x, builder.getF32Type()); }

llvm::SmallVector<Value> GraphBuilder::split(Value x, int64_t parts) {
  llvm::SmallVector<mlir::Type> types(parts, withLast(x, shapeOf(x).back() / parts));
  return llvm::to_vector(
      llvm::map_range(create<mlir::ft::SplitOp>(types, x).getParts(), [](Value v) { return v; }));
}

Value GraphBuilder::gelu(Value x, llvm::StringRef approximate) {
  return create<mlir::ft::GeluOp>(x.getType(), x, approximate);
}

Value GraphBuilder::swiglu(Value gate, Value up) {
  return create<mlir::ft::SwigluOp>(gate.getType(), gate, up);
}

Value GraphBuilder::rope(Value x, int64_t heads, double base) {
  return create<mlir::ft::RopeOp>(x.getType(), x, builder.getI64IntegerAttr(heads),
                                  builder.getF64FloatAttr(base),
                                  /*inverse=*/mlir::UnitAttr());
}

std::pair<Value, Value> GraphBuilder::rotaryTable(llvm::ArrayRef<double> frequencies, double scale) {
  // Tables stand at the beginning, in the layer that comes first, as those of ft.rope do.
  mlir::Block &block = forward.getBody().front();
  auto attr = builder.getDenseF64ArrayAttr(frequencies);
  auto scaleAttr = scale == 1 ? mlir::FloatAttr() : builder.getF64FloatAttr(scale);
  for (auto table : block.getOps<mlir::ft::RotaryTableOp>())
    if (table.getFrequenciesAttr() == attr && table.getScaleAttr() == scaleAttr)
      return {table.getCosine(), table.getSine()};
  mlir::OpBuilder::InsertionGuard guard(builder);
  mlir::StringAttr first = mlir::ft::getLayer(&block.front());
  mlir::StringAttr outside = std::exchange(layer, first);
  builder.setInsertionPointToStart(&block);
  auto type = f32(builder.getContext(), {seq, static_cast<int64_t>(frequencies.size())});
  auto table = create<mlir::ft::RotaryTableOp>(type, type, /*base=*/mlir::FloatAttr(), attr, scaleAttr);
  layer = outside;
  return {named("cosine", table.getCosine()), table.getSine()};
}

Value GraphBuilder::rotate(Value x, Value cosine, Value sine, int64_t heads) {
  return create<mlir::ft::RotateOp>(x.getType(), x, cosine, sine, builder.getI64IntegerAttr(heads),
                                    /*inverse=*/mlir::UnitAttr());
}

Value GraphBuilder::attention(Value q, Value k, Value v, int64_t heads, int64_t kvHeads,
                              const AttentionOptions &options) {
  auto real = [&](double value) { return value == 0 ? mlir::FloatAttr() : builder.getF64FloatAttr(value); };
  auto window = options.window == 0 ? mlir::IntegerAttr() : builder.getI64IntegerAttr(options.window);
  auto lse = f32(builder.getContext(), {shapeOf(q)[0], heads, shapeOf(q)[1]});
  bool drops = options.dropout > 0;
  Value numbers = drops ? rng() : Value();
  auto stream = drops ? builder.getI64IntegerAttr(nextDropoutStream++) : mlir::IntegerAttr();
  return create<mlir::ft::AttentionOp>(q.getType(), lse, q, k, v, options.lengths, options.segments, numbers,
                                       heads, kvHeads, options.causal, window, real(options.scale),
                                       real(options.softcap), /*alibi=*/false, real(options.dropout), stream)
      .getOut();
}

Value GraphBuilder::crossEntropy(Value logits, Value targets) {
  return create<mlir::ft::CrossEntropyOp>(f32(builder.getContext(), {}), logits, targets);
}

Value GraphBuilder::largest(Value x, int64_t count) {
  llvm::SmallVector<int64_t> shape(shapeOf(x));
  shape.back() = count;
  return create<mlir::ft::ArgsortOp>(i32(builder.getContext(), shape), x, /*descending=*/true);
}

Value GraphBuilder::accuracy(Value logits, Value targets) {
  llvm::SmallVector<int64_t> dims(shapeOf(targets).size());
  std::iota(dims.begin(), dims.end(), 0);
  Value best = reshape(largest(logits, 1), shapeOf(targets));
  Value right = sum(toFloat(map<mlir::ft::EqOp>({best, targets})), dims);
  // 1 where a target is 0 or more.
  Value counted = map<mlir::ft::ClampOp>(map<mlir::ft::ShiftOp>(targets, 1.0), {0.0, 1.0});
  return map<mlir::ft::DivOp>({right, sum(toFloat(counted), dims)});
}

Value GraphBuilder::sampleBits(Value logits, Value rng, int64_t stream) {
  auto type = i32(builder.getContext(), shapeOf(logits).drop_back());
  return create<mlir::ft::SampleBitsOp>(type, logits, rng, stream);
}

Value GraphBuilder::binaryMapper(Value logits, Value index, Value table) {
  return create<mlir::ft::BinaryMapperOp>(withLast(logits, shapeOf(table)[1]), logits, index, table);
}

Value GraphBuilder::bitsKl(Value logits, double kappa) {
  return create<mlir::ft::BitsKlOp>(f32(builder.getContext(), {}), logits, builder.getF64FloatAttr(kappa));
}

void GraphBuilder::output(llvm::StringRef name, Value value) {
  outputs.push_back({name.str(), named(name, value)});
}

mlir::OwningOpRef<mlir::ModuleOp> GraphBuilder::finish(Value loss) {
  llvm::SmallVector<Value> results = {loss};
  for (const auto &[name, value] : outputs)
    results.push_back(value);
  auto end = mlir::func::ReturnOp::create(builder, location, results);
  forward.setFunctionType(
      builder.getFunctionType(forward.getBody().getArgumentTypes(), end.getOperandTypes()));
  for (auto [i, output] : llvm::enumerate(outputs))
    forward.setResultAttr(i + 1, mlir::ft::kOutputAttr, builder.getStringAttr(output.first));
  // Tokens and targets need no names.
  bool usual = inputNames.size() == 2 && inputNames[0] == mlir::ft::kTokensInput &&
               inputNames[1] == mlir::ft::kTargetsInput;
  if (!usual)
    for (auto [i, name] : llvm::enumerate(inputNames))
      forward.setArgAttr(i, mlir::ft::kInputAttr, builder.getStringAttr(name));
  return std::move(module);
}

} // namespace ft::models
