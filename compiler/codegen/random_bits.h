// Words of Philox 4x32-10 (runtime/base/philox.h) for the columns of a row.
#pragma once

#include "compiler/codegen/lane_math.h"

namespace ft::compiler {

/// The state of a generator and the stream of a draw, as i64.
struct RandomKey {
  mlir::Value seed, step, rank, stream;
};

/// Of the elements from `first` on (i64; counted over all ranks), an i32 each. `width` 0: of one, as a
/// scalar. `aligned`: `first` is known to be a multiple of 4.
Lanes randomBits(LaneBuilder &b, const RandomKey &key, mlir::Value first, int64_t width, bool aligned);

} // namespace ft::compiler
