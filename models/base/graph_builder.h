// Builds the forward graph of a model: parameters as symbols, then @forward(tokens, targets) -> loss.
#pragma once

#include <string>

#include "dialects/ft/dialect.h"
#include "models/base/config.h"
#include "runtime/base/model_facts.h"

namespace ft::models {

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

// Which model the module is; becomes its attributes.
struct ModelIdentity {
  std::string model;
  std::string preset;
  std::string basePrefix; // "transformer."
  ::ft::ModelFacts facts;
};

// What attention is told beyond its heads.
struct AttentionOptions {
  bool causal = true;
  mlir::Value lengths = {};  // [batch] of i32: keys that count; null: all
  mlir::Value segments = {}; // [batch, seq] of i32: of packed documents; null: one
  bool dropout = false;      // of the probabilities, at the config's rate, with numbers of its own
};

class GraphBuilder {
public:
  GraphBuilder(mlir::MLIRContext &context, const ModelIdentity &identity, const ModelConfig &config);

  // Ops and parameters made from here on belong to `layer`.
  void enterLayer(llvm::StringRef layer);

  mlir::Value tokens();  // [batch, seq] of i32
  mlir::Value targets(); // [batch, seq] of i32

  // Declares a parameter and reads it. Those of rank below 2 are exempt from weight decay.
  mlir::Value parameter(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, Init init);

  // Reads a parameter once more, in the current layer.
  mlir::Value read(llvm::StringRef name);

  // A further name under which checkpoints hold the parameter.
  void addAlias(llvm::StringRef name, llvm::StringRef alias);

  // Gives a value its name in printed text, such as "logits"; returns it.
  mlir::Value named(llvm::StringRef name, mlir::Value value);

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
  mlir::Value
  dropout(mlir::Value x); // at the config's rate, with numbers of its own; x itself when that is 0
  mlir::Value broadcast(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  llvm::SmallVector<mlir::Value> split(mlir::Value x, int64_t parts); // equal parts of D
  mlir::Value gelu(mlir::Value x, llvm::StringRef approximate);
  mlir::Value swiglu(mlir::Value gate, mlir::Value up);
  mlir::Value rope(mlir::Value x, int64_t heads, double base);
  mlir::Value attention(mlir::Value q, mlir::Value k, mlir::Value v, int64_t heads, int64_t kvHeads,
                        const AttentionOptions &options);
  mlir::Value crossEntropy(mlir::Value logits);                                // against targets -> scalar
  mlir::Value sampleBits(mlir::Value logits, mlir::Value rng, int64_t stream); // [..., H] -> [...] of i32
  mlir::Value binaryMapper(mlir::Value logits, mlir::Value index,
                           mlir::Value table);          // table [2^H, D] -> [..., D]
  mlir::Value bitsKl(mlir::Value logits, double kappa); // -> scalar

  // Ends @forward with the loss and gives the module away; the builder is of no use afterwards.
  mlir::OwningOpRef<mlir::ModuleOp> finish(mlir::Value loss);

private:
  template <typename OpType, typename... Args> OpType create(Args &&...args);

  // [..., extent] for x [..., D].
  mlir::RankedTensorType withLast(mlir::Value x, int64_t extent);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::OpBuilder moduleBuilder; // appends parameters, before @forward
  mlir::OpBuilder builder;       // appends to the body of @forward
  mlir::Location location;
  mlir::StringAttr layer;
  mlir::Block *body = nullptr;
  mlir::Value rngInput;
  double dropoutRate;
  int64_t nextDropoutStream = kFirstDropoutStream;
  llvm::StringMap<mlir::ft::ParameterOp> parameters;
};

} // namespace ft::models
