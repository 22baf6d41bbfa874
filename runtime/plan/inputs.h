// The inputs of a model in a plan, by name and by what fills them, and the named outputs of its evaluation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

inline constexpr int kMaxInputs = 64;
inline constexpr int kMaxOutputs = 16;
inline constexpr size_t kMaxInputName = 64;  // bytes

// A name of an input or output: letters, digits and underscores, no digit first. It is that of a tensor in
// data, of a port, and a part of keys in metrics.
bool IsSignatureName(std::string_view name);
// One that the executor or the metrics give a meaning to: lr, step, rng, scaler, inverse_ranks, loss ...
bool IsReservedName(std::string_view name);

// What fills an input of this name where there are sequences of tokens: these, and what belongs to them.
// Nothing for other names.
std::optional<proto::Input::Filling> FillingOf(std::string_view name);
// Whether it belongs to sequences of tokens.
bool IsOfTokens(proto::Input::Filling filling);
// Whether an input of this type may be filled so: integers [batch, sequence]; lengths are [batch], a mask may
// be truth values.
bool CanBeFilled(proto::Input::Filling filling, DType dtype, int rank);
// In words: "the token after each".
std::string_view FillingText(proto::Input::Filling filling);

// i32, i64, f32, bf16, or U8 for truth values.
bool IsInputType(DType dtype);
// "i1" for truth values.
std::string_view InputTypeName(DType dtype);

// Whether it is the same for all examples: a tensor of the data, or a value of the plan.
bool IsConstant(const proto::Input& input);

// Elements of an example; of all of a constant.
std::vector<int64_t> ExampleShape(const proto::Input& input);
uint64_t ExampleBytes(const proto::Input& input);  // allocates nothing
// Of all inputs of a micro-step on a rank.
uint64_t BatchBytes(const proto::Plan& plan);
// "f32 [3, 32, 32]": of an example, or of all of a constant.
std::string ExampleText(const proto::Input& input);

// Whether an input is filled by tokens, or what follows them.
bool TakesTokens(const proto::Plan& plan);
// What rates count: "tokens", or "examples".
std::string_view CountedWord(const proto::Plan& plan);
// "sequences" of tokens, or "examples".
std::string_view ExampleWord(const proto::Plan& plan);
// What a rank takes at a time: "4 x 64 tokens", "32 examples".
std::string BatchText(const proto::Plan& plan);

// The input with the targets that the loss counts; null when it is a mean over the batch.
const proto::Input* CountedInput(const proto::Plan& plan);

// Whether nothing in it trains: what ftc compile --evaluate makes.
bool EvaluatesOnly(const proto::Plan& plan);

// Whether the loss is the cross entropy of tokens alone, as far as the plan shows it: a perplexity is e to
// the power of that.
bool LossIsOfTokens(const proto::Plan& plan);

// Whether rows of an evaluated batch can be filled up with what changes no result: of sequences of tokens,
// when all that is reported are means over targets, which -1 leaves out. Rows of other examples may have to
// do with each other (batch norm).
bool CanFillUpRows(const proto::Plan& plan);

}  // namespace ft
