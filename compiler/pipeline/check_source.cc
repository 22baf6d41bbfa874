#include "compiler/pipeline/check_source.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/Twine.h"

#include "runtime/plan/plan_file.h"

#include <algorithm>

namespace ft::compiler {

namespace {

// Models have some ten brackets inside each other. A level of a region costs the parser around a kilobyte.
constexpr int kMaxDepth = 256;
// Names for attributes of attributes can stand for any number of them, which a message would print.
constexpr uint64_t kMaxMeaning = 16 << 20;
constexpr llvm::StringLiteral kOfNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$-";
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

/// What the name of an attribute or type ("#name = ...") stands for, the names in it followed.
struct Meaning {
  uint64_t bytes = 0;
  int depth = 0; // of brackets
};

/// Reads a text once. Where a definition ends, MLIR's parser knows; here it ends with the next one. So the
/// last one is taken for larger than it is, for which its limit leaves room.
class SourceReader {
public:
  SourceReader(llvm::StringRef text, llvm::StringRef name) : text(text), name(name) {}

  absl::Status read() {
    for (size_t at = 0; at < text.size(); ++at) {
      absl::Status status = absl::OkStatus();
      if (size_t next = skipped(text, at); next != at)
        at = next - 1;
      else if (llvm::StringRef("([{<").contains(text[at]))
        status = open(at);
      else if (llvm::StringRef(")]}>").contains(text[at]) && !text.take_front(at).ends_with("-"))
        --depth;
      else if (llvm::StringRef("#!").contains(text[at]))
        status = readName(at);
      if (!status.ok())
        return status;
    }
    return absl::OkStatus();
  }

private:
  absl::Status open(size_t at) {
    if (++depth > kMaxDepth)
      return refuse(text, at, name, "brackets are nested deeper than " + llvm::Twine(kMaxDepth));
    meaning.depth = std::max(meaning.depth, depth - depthBefore);
    return absl::OkStatus();
  }

  /// A name begins at `at`: of what is defined here, or of what was.
  absl::Status readName(size_t at) {
    llvm::StringRef alias = text.substr(at, text.find_first_not_of(kOfNames, at + 1) - at);
    llvm::StringRef rest = text.drop_front(at + alias.size()).ltrim();
    if (rest.starts_with("=") && !rest.starts_with("==")) {
      if (!defined.empty())
        meanings[defined] = {meaning.bytes + (at - start), meaning.depth};
      defined = alias, meaning = {}, start = at, depthBefore = depth;
      return absl::OkStatus();
    }
    auto used = meanings.find(alias);
    if (used == meanings.end())
      return absl::OkStatus();
    meaning.bytes += used->second.bytes;
    meaning.depth = std::max(meaning.depth, depth - depthBefore + used->second.depth);
    if (meaning.depth > kMaxDepth)
      return refuse(text, start, name, defined + " is nested deeper than " + llvm::Twine(kMaxDepth));
    if (meaning.bytes > kMaxMeaning)
      return refuse(text, start, name,
                    defined + " stands for more than " + llvm::Twine(kMaxMeaning) + " bytes");
    return absl::OkStatus();
  }

  llvm::StringRef text, name;
  int depth = 0;
  llvm::StringMap<Meaning> meanings;
  // Of the definition that is read.
  llvm::StringRef defined;
  Meaning meaning;
  size_t start = 0;
  int depthBefore = 0;
};

} // namespace

bool isBytecode(llvm::StringRef text) { return text.starts_with(kBytecodeMagic); }

absl::Status checkSource(llvm::StringRef text, llvm::StringRef name) {
  return SourceReader(text, name).read();
}

absl::Status checkModelSource(llvm::StringRef text, llvm::StringRef name) {
  if (::ft::BeginsLikePlan({text.data(), text.size()}))
    return refuse(text, 0, name, "it is a plan, not a model; give the model that it was compiled from");
  if (isBytecode(text))
    return refuse(text, 0, name, "it is MLIR bytecode, a model is MLIR text; ft-opt writes it as text");
  return checkSource(text, name);
}

} // namespace ft::compiler
