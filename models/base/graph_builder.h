// Builds the forward graph of a model: parameters as symbols, then @forward(inputs) -> loss, outputs.
#pragma once

#include <string>

#include "dialects/ft/dialect.h"
#include "dialects/ft/elementwise.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "models/base/model_spec.h"

namespace ft::models {

// Standard deviation of the initial weights of all families.
inline constexpr double kInitDeviation = 0.02;

// An initialiser of parameters.
struct Init {
  mlir::ft::InitKind kind;
  double value; // standard deviation, or the constant

  static Init normal(double deviation) { return {mlir::ft::InitKind::normal, deviation}; }
  static Init constant(double value) { return {mlir::ft::InitKind::constant, value}; }
};

// Streams of random numbers of ops. The first belongs to the latent variable, so that dropout does not change
// its samples.
inline constexpr int64_t kSampleStream = 1;
inline constexpr int64_t kFirstDropoutStream = 2;

// What attention is told beyond its heads; 0 and null: nothing, and the usual scale.
struct AttentionOptions {
  bool causal = true;
  int64_t window = 0;
  double scale = 0;
  double softcap = 0;
  mlir::Value lengths = {};  // [batch] of i32: keys that count; null: all
  mlir::Value segments = {}; // [batch, seq] of i32: of packed documents; null: one
  double dropout = 0;        // of the probabilities: its rate, with numbers of its own
};

class GraphBuilder {
public:
  // `basePrefix` is what names of parameters begin with but for those of a head: "transformer.". Name, prefix
  // and facts become attributes of the module.
  GraphBuilder(mlir::MLIRContext &context, const ModelName &name, llvm::StringRef basePrefix,
               const ModelConfig &config);

  // Ops and parameters made from here on belong to `layer`.
  void enterLayer(llvm::StringRef layer);

  // An input of @forward, made where it is asked for first; `element` is i32 by default.
  mlir::Value input(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, mlir::Type element = {});
  mlir::Value tokens();               // [batch, seq] of i32
  mlir::Value targets();              // [batch, seq] of i32
  mlir::Value positions(bool packed); // [seq] of i32, or [batch, seq] where documents are packed
  mlir::Value segments();             // [batch, seq] of i32: which document of its sequence a token is of
  mlir::Value
  classLabels(llvm::ArrayRef<int64_t> shape = {}); // "labels", [batch, shape], i64 as data has them -> i32

  // Declares a parameter and reads it. Those of rank below 2 are exempt from weight decay.
  mlir::Value parameter(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, Init init);

  // x NAME.weight^T + NAME.bias, the weight [out, D]; and layer_norm with weight and bias of that name. Both
  // declare them.
  mlir::Value linear(const std::string &name, mlir::Value x, int64_t out, bool bias);
  mlir::Value ownLayerNorm(const std::string &name, mlir::Value x, double eps);

  // Reads a parameter once more, in the current layer.
  mlir::Value read(llvm::StringRef name);

  // A further name under which checkpoints hold the parameter.
  void addAlias(llvm::StringRef name, llvm::StringRef alias);

  // The tensors that files of weights have in a parameter's place (ft.parameter's stored_as).
  void storedAs(llvm::StringRef name, llvm::StringRef pattern);

  // Gives a value its name in printed text, such as "logits"; returns it.
  mlir::Value named(llvm::StringRef name, mlir::Value value);

  // An elementwise op, of the largest of the operands' shapes.
  template <typename OpType>
  mlir::Value map(mlir::ValueRange operands, llvm::ArrayRef<double> parameters = {}) {
    return create<OpType>(operands, parameters);
  }

  // Calls the composite `name`, which is what `body` makes of operands of these types. Calls of one name have
  // one body.
  mlir::Value composite(llvm::StringRef name, mlir::ValueRange operands,
                        llvm::function_ref<mlir::Value(mlir::ValueRange)> body);

  // In the shapes below, [..., D] are the dimensions of x.
  mlir::Value iota(int64_t count);                                         // [count] of i32
  mlir::Value rng();                                                       // seed, micro-step, rank
  mlir::Value embedding(mlir::Value ids, mlir::Value table);               // [...], [V, D] -> [..., D]
  mlir::Value matmul(mlir::Value x, mlir::Value weight, mlir::Value bias); // weight [D, N] -> [..., N]
  mlir::Value matmulTransposed(mlir::Value x, mlir::Value weight,
                               mlir::Value bias); // weight [N, D] -> [..., N]
  mlir::Value layerNorm(mlir::Value x, mlir::Value weight, mlir::Value bias, double eps);
  mlir::Value rmsNorm(mlir::Value x, mlir::Value weight, double eps);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value scale(mlir::Value x, double factor);
  mlir::Value dropout(mlir::Value x, double rate); // with numbers of its own; x itself when the rate is 0
  mlir::Value softmax(mlir::Value x);
  mlir::Value qkNorm(mlir::Value x, mlir::Value weight, int64_t heads, double eps);

  // Shapes. Elements keep their type.
  mlir::Value broadcast(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> permutation);
  mlir::Value slice(mlir::Value x, llvm::ArrayRef<int64_t> begin, llvm::ArrayRef<int64_t> shape);
  mlir::Value concat(mlir::ValueRange parts, int64_t axis);
  mlir::Value sum(mlir::Value x, llvm::ArrayRef<int64_t> dims);
  mlir::Value convert(mlir::Value x, mlir::Type element);
  mlir::Value toFloat(mlir::Value x);                                 // integers or truth values as f32
  llvm::SmallVector<mlir::Value> split(mlir::Value x, int64_t parts); // equal parts of D
  mlir::Value gelu(mlir::Value x, llvm::StringRef approximate);
  mlir::Value swiglu(mlir::Value gate, mlir::Value up);
  mlir::Value rope(mlir::Value x, int64_t heads, double base);
  // Of positions 0 ... seq - 1: [seq, frequencies] both. One for all calls that want the same.
  std::pair<mlir::Value, mlir::Value> rotaryTable(llvm::ArrayRef<double> frequencies, double scale);
  mlir::Value rotate(mlir::Value x, mlir::Value cosine, mlir::Value sine, int64_t heads);
  mlir::Value attention(mlir::Value q, mlir::Value k, mlir::Value v, int64_t heads, int64_t kvHeads,
                        const AttentionOptions &options);
  // A mean over the targets that are not negative -> scalar.
  mlir::Value crossEntropy(mlir::Value logits, mlir::Value targets);
  // The part of these whose logit is the largest of its row -> scalar.
  mlir::Value accuracy(mlir::Value logits, mlir::Value targets);
  // Ids of the `count` largest elements of each row, in descending order; of equal ones the first comes
  // first.
  mlir::Value largest(mlir::Value x, int64_t count);
  mlir::Value sampleBits(mlir::Value logits, mlir::Value rng, int64_t stream); // [..., H] -> [...] of i32
  mlir::Value binaryMapper(mlir::Value logits, mlir::Value index,
                           mlir::Value table);          // table [2^H, D] -> [..., D]
  mlir::Value bitsKl(mlir::Value logits, double kappa); // -> scalar

  // A named mean that evaluation reports: a scalar.
  void output(llvm::StringRef name, mlir::Value value);

  // Ends @forward with the loss and gives the module away; the builder is of no use afterwards.
  mlir::OwningOpRef<mlir::ModuleOp> finish(mlir::Value loss);

  // Any other op of the dialect, in the current layer.
  template <typename OpType, typename... Args> OpType create(Args &&...args) {
    auto op = OpType::create(builder, location, std::forward<Args>(args)...);
    if (layer)
      mlir::ft::setLayer(op, layer);
    return op;
  }

  mlir::Builder &types() { return builder; }

private:
  // [..., extent] for x [..., D].
  mlir::RankedTensorType withLast(mlir::Value x, int64_t extent);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::OpBuilder moduleBuilder; // appends parameters, before @forward
  mlir::OpBuilder builder;       // appends to the body of @forward
  mlir::Location location;
  mlir::StringAttr layer;
  mlir::func::FuncOp forward;
  llvm::StringMap<mlir::Value> inputs;
  llvm::SmallVector<std::string> inputNames; // in the order of the arguments
  llvm::SmallVector<std::pair<std::string, mlir::Value>> outputs;
  llvm::StringMap<mlir::func::FuncOp> composites;
  int64_t batch, seq;
  mlir::Value rngInput;
  int64_t nextDropoutStream = kFirstDropoutStream;
  llvm::StringMap<mlir::ft::ParameterOp> parameters;
};

} // namespace ft::models
