#include <utility>

#include "fmt/format.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/numbers.h"
#include "runtime/base/printable.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/safetensors_header.h"
#include "tools/ftckpt/commands.h"
#include "tools/ftckpt/comparison.h"

namespace ft::ckpt {
namespace {

std::string NameOf(const SideTensor& tensor) { return OneLine(tensor.name, kMaxNameBytes); }

std::string Shape(const SideTensor& tensor) { return OneLine(ShapeText(tensor.shape), kMaxNameBytes); }

// "wte.weight", or both names where they are not the same.
std::string NamesOf(const SideTensor& a, const SideTensor& b) {
  return a.name == b.name ? NameOf(a) : fmt::format("{} = {}", NameOf(a), NameOf(b));
}

std::string Types(const SideTensor& a, const SideTensor& b) {
  return a.dtype == b.dtype ? std::string(Name(a.dtype))
                            : fmt::format("{} and {}", Name(a.dtype), Name(b.dtype));
}

std::string Line(const SideTensor& a, const SideTensor& b, const TensorDifference& difference) {
  if (!difference.same_shape)
    return fmt::format("different  {}  shape {} and {}\n", NamesOf(a, b), Shape(a), Shape(b));
  if (difference.equal()) return fmt::format("equal      {}  {}\n", NamesOf(a, b), Types(a, b));
  return fmt::format("different  {}  {}: {} of {} elements, by {:.6g} at most, relatively {:.6g}\n",
                     NamesOf(a, b), Types(a, b), Grouped(difference.differing), Grouped(difference.elements),
                     difference.absolute, difference.relative);
}

std::string LinesOf(std::string_view where, const TensorSide& side, const std::vector<size_t>& tensors) {
  std::string lines;
  for (const size_t t : tensors) {
    const SideTensor& tensor = side.tensors()[t];
    lines += fmt::format("only in {}  {}  {} {}\n", where, NameOf(tensor), Name(tensor.dtype), Shape(tensor));
  }
  return lines;
}

}  // namespace

absl::StatusOr<int> Diff(const std::string& path_a, const std::string& path_b) {
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<TensorSide> a, OpenSide(path_a));
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<TensorSide> b, OpenSide(path_b));
  FT_RETURN_IF_ERROR(PrintOut(fmt::format("A: {}\nB: {}\n", OneLine(a->title()), OneLine(b->title()))));
  const Pairing pairing = PairTensors(*a, *b);
  size_t equal = 0;
  for (const auto& [in_a, in_b] : pairing.pairs) {
    FT_ASSIGN_OR_RETURN(const TensorDifference difference, CompareTensors(*a, in_a, *b, in_b));
    equal += difference.equal() ? 1 : 0;
    FT_RETURN_IF_ERROR(PrintOut(Line(a->tensors()[in_a], b->tensors()[in_b], difference)));
  }
  const size_t different = pairing.pairs.size() - equal,
               alone = pairing.only_a.size() + pairing.only_b.size();
  std::string text = LinesOf("A", *a, pairing.only_a) + LinesOf("B", *b, pairing.only_b);
  text += fmt::format("{} equal, {} different, {} only in A, {} only in B", equal, different,
                      pairing.only_a.size(), pairing.only_b.size());
  if (pairing.left_out > 0)
    text += fmt::format("; {} not compared (the optimizer's, or buffers without meaning)", pairing.left_out);
  FT_RETURN_IF_ERROR(PrintOut(text + "\n"));
  return different + alone > 0 ? kExitDifferent : kExitOk;
}

}  // namespace ft::ckpt
