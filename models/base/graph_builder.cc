#include "models/base/graph_builder.h"

#include <cassert>

#include "dialects/ft/elementwise.h"
#include "dialects/ft/facts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::models {
namespace {

using mlir::RankedTensorType;
using mlir::Value;

llvm::ArrayRef<int64_t> shapeOf(Value value) {
  return mlir::cast<RankedTensorType>(value.getType()).getShape();
}

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

GraphBuilder::GraphBuilder(mlir::MLIRContext &context, const ModelIdentity &identity,
                           const ModelConfig &config)
    : module(mlir::ModuleOp::create(mlir::UnknownLoc::get(&context))), moduleBuilder(&context),
      builder(&context), location(mlir::UnknownLoc::get(&context)), dropoutRate(config.dropout) {
  auto set = [&](llvm::StringRef name, mlir::Attribute value) { (*module)->setAttr(name, value); };
  set(mlir::ft::kModelAttr, builder.getStringAttr(identity.model));
  set(mlir::ft::kPresetAttr, builder.getStringAttr(identity.preset));
  set(mlir::ft::kBasePrefixAttr, builder.getStringAttr(identity.basePrefix));
  set(mlir::ft::kBatchAttr, builder.getI64IntegerAttr(config.batch));
  set(mlir::ft::kSeqLenAttr, builder.getI64IntegerAttr(config.seq));
  set(mlir::ft::kVocabSizeAttr, builder.getI64IntegerAttr(config.vocab));
  set(mlir::ft::kFactsAttr, mlir::ft::factsToAttr(&context, identity.facts));

  moduleBuilder.setInsertionPointToEnd(module->getBody());
  mlir::Type ids = i32(&context, {config.batch, config.seq});
  auto type = builder.getFunctionType({ids, ids}, {f32(&context, {})});
  auto forward = mlir::func::FuncOp::create(moduleBuilder, location, mlir::ft::kForwardFunction, type);
  moduleBuilder.setInsertionPoint(forward);
  body = forward.addEntryBlock();
  body->getArgument(0).setLoc(nameLocation(context, "tokens"));
  body->getArgument(1).setLoc(nameLocation(context, "targets"));
  builder.setInsertionPointToEnd(body);
}

template <typename OpType, typename... Args> OpType GraphBuilder::create(Args &&...args) {
  auto op = OpType::create(builder, location, std::forward<Args>(args)...);
  if (layer)
    mlir::ft::setLayer(op, layer);
  return op;
}

void GraphBuilder::enterLayer(llvm::StringRef name) { layer = builder.getStringAttr(name); }

Value GraphBuilder::tokens() { return body->getArgument(0); }

Value GraphBuilder::targets() { return body->getArgument(1); }

Value GraphBuilder::parameter(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, Init init) {
  mlir::MLIRContext *context = builder.getContext();
  auto symbol = mlir::ft::ParameterOp::create(
      moduleBuilder, location, builder.getStringAttr(name), mlir::TypeAttr::get(f32(context, shape)),
      mlir::ft::InitAttr::get(context, init.kind, init.value), layer,
      /*no_decay=*/shape.size() < 2 ? builder.getUnitAttr() : mlir::UnitAttr(), /*frozen=*/mlir::UnitAttr(),
      /*aliases=*/mlir::ArrayAttr(), /*unit=*/mlir::FlatSymbolRefAttr(), /*offset=*/mlir::IntegerAttr());
  bool isNew = parameters.try_emplace(name, symbol).second;
  assert(isNew && "a parameter is declared twice");
  (void)isNew;
  return read(name);
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

Value GraphBuilder::named(llvm::StringRef name, Value value) {
  value.setLoc(nameLocation(*builder.getContext(), name));
  return value;
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

Value GraphBuilder::add(Value a, Value b) { return create<mlir::ft::AddOp>(mlir::ValueRange{a, b}); }

Value GraphBuilder::scale(Value x, double factor) {
  return create<mlir::ft::ScaleOp>(mlir::ValueRange(x), factor);
}

Value GraphBuilder::dropout(Value x) {
  if (dropoutRate == 0)
    return x;
  Value numbers = rng();
  return create<mlir::ft::DropoutOp>(x.getType(), x, numbers, builder.getF64FloatAttr(dropoutRate),
                                     builder.getI64IntegerAttr(nextDropoutStream++));
}

Value GraphBuilder::broadcast(Value x, llvm::ArrayRef<int64_t> shape) {
  return create<mlir::ft::BroadcastOp>(f32(builder.getContext(), shape), x);
}

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

Value GraphBuilder::attention(Value q, Value k, Value v, int64_t heads, int64_t kvHeads,
                              const AttentionOptions &options) {
  auto lse = f32(builder.getContext(), {shapeOf(q)[0], heads, shapeOf(q)[1]});
  bool drops = options.dropout && dropoutRate > 0;
  Value numbers = drops ? rng() : Value();
  auto rate = drops ? builder.getF64FloatAttr(dropoutRate) : mlir::FloatAttr();
  auto stream = drops ? builder.getI64IntegerAttr(nextDropoutStream++) : mlir::IntegerAttr();
  auto op = create<mlir::ft::AttentionOp>(q.getType(), lse, q, k, v, options.lengths, options.segments,
                                          numbers, heads, kvHeads, options.causal,
                                          /*window=*/mlir::IntegerAttr(), /*scale=*/mlir::FloatAttr(),
                                          /*softcap=*/mlir::FloatAttr(), /*alibi=*/false, rate, stream);
  return op.getOut();
}

Value GraphBuilder::crossEntropy(Value logits) {
  return create<mlir::ft::CrossEntropyOp>(f32(builder.getContext(), {}), logits, targets());
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

mlir::OwningOpRef<mlir::ModuleOp> GraphBuilder::finish(Value loss) {
  mlir::func::ReturnOp::create(builder, location, loss);
  return std::move(module);
}

} // namespace ft::models
