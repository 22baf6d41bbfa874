#include "compiler/pipeline/diagnostics.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "runtime/base/did_you_mean.h"
#include "runtime/base/printable.h"

namespace ft::compiler {

using namespace mlir;

namespace {

/// "file:line:column: ", or nothing for an op that no file mentions.
std::string placeOf(Location loc) {
  std::string place;
  loc->walk([&](Location part) {
    auto file = dyn_cast<FileLineColLoc>(part);
    if (!file)
      return WalkResult::advance();
    place = file.getFilename().str() + ":" + std::to_string(file.getLine()) + ":" +
            std::to_string(file.getColumn()) + ": ";
    return WalkResult::interrupt();
  });
  return place;
}

std::string oneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// What MLIR's parser says about a name without saying the name.
constexpr StringLiteral kNameless[] = {"use of undeclared SSA value name", "reference to an undefined block"};

bool isOfName(char c) { return llvm::isAlnum(c) || StringRef("_$.-#").contains(c); }

/// The name at the beginning of `text`, '%' or '^' and what follows; empty when there is none.
StringRef nameAt(StringRef text) {
  if (text.empty() || !StringRef("%^").contains(text.front()))
    return {};
  size_t end = 1;
  while (end < text.size() && isOfName(text[end]))
    ++end;
  return text.take_front(end);
}

/// From this place of the text on.
StringRef textFrom(StringRef text, FileLineColLoc place) {
  for (unsigned line = 1; line < place.getLine(); ++line)
    text = text.split('\n').second;
  return text.drop_front(std::min<size_t>(text.size(), place.getColumn() - 1));
}

/// A name nearby is looked for among so many.
constexpr size_t kMaxNames = 20000;

/// Names of values that `text` defines, or says the type of, but `unknown`.
std::vector<std::string_view> definedNames(StringRef text, StringRef unknown) {
  std::vector<std::string_view> names;
  for (size_t at = text.find_first_of("%^"); at != StringRef::npos && names.size() < kMaxNames;
       at = text.find_first_of("%^", at + 1)) {
    StringRef name = nameAt(text.drop_front(at)), rest = text.drop_front(at + name.size()).ltrim(' ');
    if (name != unknown && (rest.starts_with("=") || rest.starts_with(":")))
      names.emplace_back(name.data(), name.size());
  }
  return names;
}

/// The name at `place` of `source`: " '%x'", or with ", did you mean '%y'?".
std::string showName(StringRef source, Location place) {
  auto file = dyn_cast<FileLineColLoc>(place);
  StringRef name = file && file.getLine() > 0 && file.getColumn() > 0 ? nameAt(textFrom(source, file)) : "";
  if (name.empty())
    return "";
  std::string shown = " " + Quote({name.data(), name.size()});
  std::string_view nearest = NearestName({name.data(), name.size()}, definedNames(source, name));
  return nearest.empty() ? shown : shown + ", did you mean " + Quote(nearest) + "?";
}

} // namespace

FirstError::FirstError(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error || !first.empty())
          return success();
        std::string message = diagnostic.str();
        first = placeOf(diagnostic.getLocation()) + "error: " + oneLine(message);
        if (!source.empty() && llvm::is_contained(kNameless, message))
          first += showName(source, diagnostic.getLocation());
        // Notes that show the whole op are for debuggers of the compiler.
        for (Diagnostic &note : diagnostic.getNotes())
          if (std::string text = note.str(); !StringRef(text).starts_with("see current operation"))
            first += "; " + placeOf(note.getLocation()) + oneLine(text);
        return success();
      }) {}

} // namespace ft::compiler
