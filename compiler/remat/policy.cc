#include "compiler/remat/policy.h"

#include "dialects/ft/interfaces.h"
#include "runtime/base/did_you_mean.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace ft::compiler {

using llvm::StringRef;

namespace {

using Kind = RematPolicy::Kind;

constexpr std::string_view kNames[] = {"none", "every_n", "segments", "full", "ops", "budget"};

absl::Status refuse(StringRef name, StringRef rest, StringRef wanted) {
  return absl::InvalidArgumentError("recomputation policy '" + name.str() + ":" + rest.str() +
                                    "': expected " + wanted.str());
}

absl::StatusOr<RematPolicy> parseCount(Kind kind, StringRef name, StringRef rest, StringRef wanted) {
  RematPolicy policy{.kind = kind};
  if (kind == Kind::Segments && (rest == "sqrt" || rest == "0"))
    return policy;
  if (rest.getAsInteger(10, policy.count) || policy.count < 1)
    return refuse(name, rest, wanted);
  return policy;
}

absl::StatusOr<RematPolicy> parseClasses(StringRef rest) {
  RematPolicy policy{.kind = Kind::Ops};
  llvm::SmallVector<StringRef> parts;
  rest.split(parts, ',');
  std::vector<std::string_view> known(std::begin(mlir::ft::kOpClasses), std::end(mlir::ft::kOpClasses));
  for (StringRef part : parts) {
    if (!llvm::is_contained(known, std::string_view(part)))
      return absl::InvalidArgumentError(UnknownName("class of ops", part, known));
    policy.classes.push_back(part.str());
  }
  return policy;
}

} // namespace

absl::StatusOr<RematPolicy> parseRematPolicy(std::string_view text) {
  auto [name, rest] = StringRef(text).split(':');
  if (!llvm::is_contained(kNames, std::string_view(name)))
    return absl::InvalidArgumentError(UnknownName("recomputation policy", name, kNames));
  bool bare = name == "none" || name == "full";
  if (bare && name != StringRef(text))
    return absl::InvalidArgumentError("recomputation policy '" + name.str() +
                                      "' takes nothing after a colon");
  if (name == "none")
    return RematPolicy();
  if (name == "full")
    return RematPolicy{.kind = Kind::EveryN, .count = 1};
  if (name == "every_n")
    return parseCount(Kind::EveryN, name, rest, "every_n:N, N layers in a group");
  if (name == "segments")
    return parseCount(Kind::Segments, name, rest, "segments:K, K groups of layers, or segments:sqrt");
  if (name == "ops")
    return parseClasses(rest);
  RematPolicy budget{.kind = Kind::Budget};
  if (rest.getAsInteger(10, budget.bytes) || budget.bytes == 0)
    return refuse(name, rest, "budget:BYTES, the bytes that a rank may use");
  return budget;
}

bool isBudget(std::string_view text) { return StringRef(text).starts_with("budget:"); }

} // namespace ft::compiler
