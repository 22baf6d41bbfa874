// The state of a training run: flat buffers of units, and which rank holds and which saves what of them.
//
// A pure function of the plan and the mesh, so that every rank knows the share of every other without a word.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "runtime/base/dtype.h"
#include "runtime/base/state_shape.h"
#include "runtime/plan/mesh.h"

namespace ft {

// [begin, end), in elements of a buffer of a unit.
struct ElementRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  friend bool operator==(const ElementRange&, const ElementRange&) = default;
};

inline ElementRange Intersect(const ElementRange& a, const ElementRange& b) {
  const uint64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

// The role of the weights that the optimizer updates; other roles are the optimizer's own ("exp_avg").
inline constexpr char kWeightsRole[] = "weights";

struct StateUnit {
  std::string name;
  uint64_t elements = 0;  // without the padding that a mesh adds; a multiple of the block
  friend bool operator==(const StateUnit&, const StateUnit&) = default;
};

struct StateParameter {
  std::string name;
  std::vector<int64_t> shape;
  uint32_t unit = 0;
  uint64_t offset = 0;         // first element in the unit
  uint64_t elements = 0;       // product of the shape
  std::string stored_as = {};  // what files for Hugging Face have in its place (runtime/base/stored_parts.h)
  // Whether they are one in the state; how other files name it is not part of that.
  friend bool operator==(const StateParameter& a, const StateParameter& b) {
    return a.name == b.name && a.shape == b.shape && a.unit == b.unit && a.offset == b.offset;
  }
};

// What one role of one unit is at rest.
struct StateBuffer {
  uint32_t unit = 0;
  std::string role;
  DType dtype = DType::kF32;
  bool sliced = false;                                // over the shard axis; otherwise whole on every rank
  StateLayoutKind kind = StateLayoutKind::kElements;  // any other is of whole buffers
  friend bool operator==(const StateBuffer&, const StateBuffer&) = default;
};

struct StateLayout {
  Mesh mesh;
  uint64_t block_elements = 1;
  std::vector<StateUnit> units;
  std::vector<StateParameter> parameters;  // by unit and offset
  std::vector<StateBuffer> buffers;        // by role and unit; wide types before narrow ones

  int world_size() const { return mesh.world_size(); }
  uint64_t SliceElements(uint32_t unit) const;

  // What `rank` has of a buffer at rest; the end of the last slice may be padding.
  ElementRange HeldBy(const StateBuffer& buffer, int rank) const;

  // What `rank` saves of it. These parts are whole blocks, cover the unit once over all ranks, and lie in
  // what the rank holds: ranks that hold the same share the work.
  ElementRange SavedBy(const StateBuffer& buffer, int rank) const;

  // The rank that saves `element` of a buffer.
  int SaverOf(const StateBuffer& buffer, uint64_t element) const;

  // Those of a whole buffer, without the padding that a mesh adds.
  uint64_t Elements(const StateBuffer& buffer) const;

  // Each parameter that has a part of the buffer, with its place there, in order. Its shape is that of
  // StateShape.
  void ForEachTensor(const StateBuffer& buffer,
                     absl::FunctionRef<void(const StateParameter&, ElementRange)> visit) const;

  // Errors: InvalidArgument for sizes that overflow, a parameter outside of its unit or over another one, an
  // empty or repeated name, a buffer of no unit or twice. Everything else here expects a layout that passed.
  absl::Status Check() const;

 private:
  // [first, last) of `parameters` that lie in `unit`.
  std::pair<size_t, size_t> ParametersOf(uint32_t unit) const;
  uint64_t PartBlocks(const StateBuffer& buffer) const;
};

// Puts the parts that files for Hugging Face have in the place of parameters (StoredParts). Errors: its.
absl::Status SplitIntoParts(StateLayout& layout);

// The order of buffers in a layout: wide types first, so that every tensor of a file is aligned; weights
// before what the optimizer keeps; then by role and unit.
void OrderBuffers(std::vector<StateBuffer>& buffers);

// Elements without what pads parameters to blocks, in bytes, over all buffers: what a checkpoint holds.
uint64_t StateBytes(const StateLayout& layout);

// Of that what `rank` saves; in a checkpoint of type local with what pads parameters.
uint64_t SavedBytes(const StateLayout& layout, int rank);
uint64_t LocallySavedBytes(const StateLayout& layout, int rank);

// The most that any rank saves. `bytes`: one of the two above.
uint64_t LargestShare(const StateLayout& layout, uint64_t (*bytes)(const StateLayout&, int) = SavedBytes);

}  // namespace ft
