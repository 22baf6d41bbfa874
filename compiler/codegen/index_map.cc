#include "compiler/codegen/index_map.h"

#include <numeric>

namespace ft::compiler {

using Place = ClusterBody::Place;

int64_t SpaceDigits::numRows() const {
  return std::accumulate(rows.begin(), rows.end(), int64_t{1}, std::multiplies<>());
}

IndexMap SpaceDigits::whole() const {
  IndexMap map = oneARow();
  for (int64_t &stride : map.strides)
    stride *= columns;
  map.strides.back() = columns == 1 ? 0 : 1;
  return map;
}

IndexMap SpaceDigits::oneARow() const {
  IndexMap map;
  map.strides.assign(rows.size() + 1, 0);
  for (size_t digit = rows.size(), stride = 1; digit-- > 0; stride *= rows[digit])
    map.strides[digit] = static_cast<int64_t>(stride);
  return map;
}

// Neighbouring digits that go on where the one before ends are one step.
Place SpaceDigits::placeOf(const IndexMap &map) const {
  Place place = {.begin = map.begin, .column_stride = map.ofColumns()};
  int64_t every = 1;
  for (size_t digit = rows.size(); digit-- > 0; every *= rows[digit]) {
    if (map.strides[digit] == 0)
      continue;
    Place::Step *last = place.steps.empty() ? nullptr : &place.steps.back();
    if (last && last->every * last->extent == every && last->stride * last->extent == map.strides[digit])
      last->extent *= rows[digit];
    else
      place.steps.push_back({every, rows[digit], map.strides[digit]});
  }
  return place;
}

llvm::SmallVector<int64_t> stridesOf(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

std::variant<DimensionMap, Cut> dimensionsOf(const IndexMap &map, const SpaceDigits &space,
                                             llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> strides = stridesOf(shape);
  DimensionMap result;
  for (size_t i = 0; i < shape.size(); ++i)
    result.begins.push_back(map.begin / strides[i] % shape[i]);
  llvm::SmallVector<int64_t> reach = result.begins; // the largest index of each dimension
  for (auto [digit, stride] : llvm::enumerate(map.strides)) {
    int64_t extent = space.extent(digit);
    if (stride == 0 || extent == 1) {
      result.digits.push_back({0, 0});
      continue;
    }
    // The innermost dimension whose elements are no further apart than the digit moves.
    size_t at = 0;
    while (strides[at] > stride)
      ++at;
    int64_t moves = stride / strides[at];
    if (stride % strides[at] != 0)
      return Cut{static_cast<unsigned>(digit), 0};
    if (moves * extent > shape[at]) // over the end of the dimension, into the one before
      return Cut{static_cast<unsigned>(digit), shape[at] % moves == 0 ? shape[at] / moves : 0};
    reach[at] += moves * (extent - 1);
    result.digits.push_back({static_cast<unsigned>(at), moves});
  }
  for (size_t i = 0; i < shape.size(); ++i)
    if (reach[i] >= shape[i])
      return Cut{0, 0};
  return result;
}

IndexMap linear(const DimensionMap &map, llvm::ArrayRef<int64_t> strides) {
  IndexMap result;
  for (auto [begin, stride] : llvm::zip_equal(map.begins, strides))
    result.begin += begin * stride;
  for (auto [dimension, moves] : map.digits)
    result.strides.push_back(strides.empty() ? 0 : moves * strides[dimension]);
  return result;
}

} // namespace ft::compiler
