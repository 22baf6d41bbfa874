#include "compiler/pipeline/check_source.h"

#include "llvm/ADT/Twine.h"

namespace ft::compiler {

namespace {

// Models have some ten brackets inside each other. A level of a region costs the parser around a kilobyte.
constexpr int kMaxDepth = 256;
constexpr llvm::StringLiteral kBytecodeMagic = "ML\xefR";

absl::Status refuse(llvm::StringRef text, size_t at, llvm::StringRef name, const llvm::Twine &what) {
  llvm::StringRef before = text.take_front(at);
  size_t column = at - (before.rfind('\n') + 1); // npos + 1 is 0: the first line
  return absl::InvalidArgumentError(
      (name + ":" + llvm::Twine(before.count('\n') + 1) + ":" + llvm::Twine(column + 1) + ": error: " + what)
          .str());
}

/// Past the string or comment that begins at `at`, or `at` when none does.
size_t skipped(llvm::StringRef text, size_t at) {
  llvm::StringRef rest = text.drop_front(at);
  if (rest.starts_with("//"))
    return std::min(text.find('\n', at), text.size());
  if (!rest.starts_with("\""))
    return at;
  for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
    if (text[at] == '\\')
      ++at;
  return std::min(at + 1, text.size());
}

} // namespace

absl::Status checkSource(llvm::StringRef text, llvm::StringRef name) {
  if (text.starts_with(kBytecodeMagic))
    return refuse(text, 0, name, "it is MLIR bytecode, a model is MLIR text; ft-opt writes it as text");
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (size_t next = skipped(text, at); next != at)
      at = next - 1;
    else if (llvm::StringRef("([{<").contains(text[at]) && ++depth > kMaxDepth)
      return refuse(text, at, name, "brackets are nested deeper than " + llvm::Twine(kMaxDepth));
    else if (llvm::StringRef(")]}>").contains(text[at]) && !text.take_front(at).ends_with("-"))
      --depth;
  }
  return absl::OkStatus();
}

} // namespace ft::compiler
