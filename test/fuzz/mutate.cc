#include "test/fuzz/mutate.h"

#include <cmath>
#include <limits>

#include "runtime/base/cluster.h"

namespace ft::fuzz {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
// Tensors are within the memory of a machine: 2^44 bytes.
constexpr int64_t kMostBytes = int64_t{1} << 44;

// (2^64 + k) / n or (2^63 + k) / n: n times that is k, or next to nothing, when it wraps round.
int64_t Wrapping(Random& random) {
  const int64_t n = 2 + static_cast<int64_t>(random.Below(14)), k = static_cast<int64_t>(random.Below(9)) - 4;
  const unsigned __int128 whole = static_cast<unsigned __int128>(1) << (random.OneIn(2) ? 64 : 63);
  return static_cast<int64_t>(
      static_cast<uint64_t>((whole + static_cast<unsigned __int128>(static_cast<__int128>(k))) / n));
}

int64_t Extreme(Random& random, int64_t old) {
  const int64_t near = static_cast<int64_t>(random.Below(5)) - 2;
  const uint64_t wide = static_cast<uint64_t>(old);
  switch (random.Below(9)) {
    case 0:
      return near;
    case 1:
      return static_cast<int64_t>(wide + static_cast<uint64_t>(near));
    case 2:
      return static_cast<int64_t>(wide * random.Below(9));
    case 3:
      return old / (1 + static_cast<int64_t>(random.Below(8)));
    case 4:  // near a power of two
      return static_cast<int64_t>((uint64_t{1} << random.Below(64)) + static_cast<uint64_t>(near));
    case 5:
      return Wrapping(random);
    case 6:
      return random.OneIn(2) ? kLargest : -kLargest - 1;
    case 7:
      return static_cast<int64_t>(0u - wide);
    default:
      return static_cast<int64_t>(random.Below(64));
  }
}

double ExtremeReal(Random& random, double old) {
  constexpr double kValues[] = {0.0,    -0.0, 1.0,   -1.0,  0.5,          1e-8, 1e300,    -1e300,   3.5e38,
                                1e-320, 2e19, 255.0, 256.0, 2147483648.0, NAN,  INFINITY, -INFINITY};
  return random.OneIn(4) ? old * 2 : kValues[random.Below(std::size(kValues))];
}

KernelAttributes::Value OtherType(Random& random) {
  switch (random.Below(4)) {
    case 0:
      return int64_t{1};
    case 1:
      return 0.5;
    case 2:
      return std::string("none");
    default:
      return std::vector<int64_t>{0, 1, 2};
  }
}

void MutateInts(Random& random, std::vector<int64_t>& values) {
  if (values.empty() || random.OneIn(8)) {
    values.push_back(Extreme(random, 0));
  } else if (random.OneIn(8)) {
    values.pop_back();
  } else {
    int64_t& value = random.Pick(values);
    value = Extreme(random, value);
  }
}

void MutateAttribute(Random& random, Entries& entries) {
  if (entries.empty()) return;
  const size_t at = random.Below(entries.size());
  if (random.OneIn(24)) {
    entries.erase(entries.begin() + static_cast<ptrdiff_t>(at));
    return;
  }
  KernelAttributes::Value& value = entries[at].second;
  if (random.OneIn(16)) {
    value = OtherType(random);
  } else if (auto* number = std::get_if<int64_t>(&value)) {
    *number = Extreme(random, *number);
  } else if (auto* real = std::get_if<double>(&value)) {
    *real = ExtremeReal(random, *real);
  } else if (auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
    MutateInts(random, *ints);
  } else if (auto* text = std::get_if<std::string>(&value)) {
    constexpr const char* kTexts[] = {"", "tanh", "none", "erf", "\x1b[31m", "%s%n"};
    *text = kTexts[random.Below(std::size(kTexts))];
  }
}

bool Fits(const Operand& operand) {
  int64_t bytes = static_cast<int64_t>(SizeOf(operand.dtype));
  for (const int64_t extent : operand.dims) {
    if (extent < 1 || extent > kMostBytes / bytes) return false;
    bytes *= extent;
  }
  return true;
}

std::vector<Operand*> Tensors(Seed& seed) {
  std::vector<Operand*> tensors;
  for (auto* list : {&seed.in, &seed.out}) {
    for (Operand& operand : *list) tensors.push_back(&operand);
  }
  return tensors;
}

// A small extent, or one beyond 31 or 32 bits.
int64_t OtherExtent(Random& random, int64_t old) {
  switch (random.Below(8)) {
    case 0:
      return (int64_t{1} << 31) + static_cast<int64_t>(random.Below(3)) - 1;
    case 1:
      return int64_t{1} << (31 + random.Below(12));
    case 2:
      return old * 2;
    case 3:
      return old + 1;
    case 4:
      return old > 1 ? old - 1 : 1;
    default:
      return 1 + static_cast<int64_t>(random.Below(70));
  }
}

void MutateExtent(Random& random, Seed& seed) {
  const std::vector<Operand*> tensors = Tensors(seed);
  if (tensors.empty()) return;
  const Operand& chosen = *random.Pick(tensors);
  if (chosen.dims.empty()) return;
  const size_t at = random.Below(chosen.dims.size());
  const int64_t old = chosen.dims[at], value = OtherExtent(random, old);
  // Of all tensors that have it, so that they fit together again; or of this one.
  const bool all = !random.OneIn(3);
  for (Operand* tensor : tensors) {
    if (!all && tensor != &chosen) continue;
    Operand changed = *tensor;
    for (size_t i = 0; i < changed.dims.size(); ++i) {
      if (changed.dims[i] == old && (all || i == at)) changed.dims[i] = value;
    }
    if (Fits(changed)) *tensor = changed;
  }
}

void MutateTensor(Random& random, Seed& seed) {
  const std::vector<Operand*> tensors = Tensors(seed);
  if (tensors.empty()) return;
  Operand& tensor = *random.Pick(tensors);
  switch (random.Below(8)) {
    case 0:
      tensor.present = !tensor.present;
      break;
    case 1:
      tensor.dtype = static_cast<DType>(random.Below(7));
      break;
    case 2:
      if (tensor.dims.size() < kMaxRank) tensor.dims.insert(tensor.dims.begin(), 1);
      break;
    case 3:
      if (!tensor.dims.empty()) tensor.dims.erase(tensor.dims.begin());
      break;
    case 4:
      tensor.flat_begin = static_cast<int64_t>(random.Below(uint64_t{1} << random.Below(49)));
      break;
    case 5:
      tensor.parameters.clear();
      break;
    case 6:
      tensor.shift = static_cast<int64_t>(random.Below(70));
      break;
    default:
      tensor.below = random.OneIn(2) ? 0 : 1 + static_cast<int64_t>(random.Below(100));
      break;
  }
  if (!Fits(tensor)) tensor.dims = {1};
}

// The type of all tensors that have it.
void MutateTypes(Random& random, Seed& seed) {
  constexpr DType kTypes[] = {DType::kF32, DType::kBF16, DType::kF16};
  const DType from = kTypes[random.Below(3)], to = kTypes[random.Below(3)];
  for (Operand* tensor : Tensors(seed)) {
    if (tensor->dtype == from) tensor->dtype = to;
    if (!Fits(*tensor)) tensor->dtype = from;
  }
}

void MutateCount(Random& random, Seed& seed) {
  std::vector<Operand>& list = random.OneIn(2) ? seed.in : seed.out;
  if (list.empty() || random.OneIn(2)) {
    list.push_back({.dtype = DType::kF32, .dims = {2, 3}});
  } else {
    list.pop_back();
  }
}

void MutateWorkspace(Random& random, Seed& seed) {
  Operand& scratch = seed.workspace;
  if (!scratch.present) {
    scratch = {.dtype = DType::kU8, .dims = {int64_t{1} << random.Below(20)}};
  } else if (random.OneIn(4)) {
    scratch.shift = static_cast<int64_t>(random.Below(70));
  } else {
    scratch.dims[0] = 1 + static_cast<int64_t>(random.Below(2 * static_cast<uint64_t>(scratch.dims[0])));
  }
}

void MutatePlace(Random& random, Seed& seed) {
  if (seed.in.empty() || seed.out.empty()) return;
  Operand& out = random.Pick(seed.out);
  const size_t at = random.Below(seed.in.size());
  const Operand& in = seed.in[at];
  if (in.present && in.dtype == out.dtype && in.dims == out.dims) out.shares = static_cast<int>(at);
}

DType AnyType(Random& random) { return static_cast<DType>(random.Below(8)); }  // one is none

void MutatePlace(Random& random, ClusterBody::Place& place) {
  if (random.OneIn(3)) place.begin = Extreme(random, place.begin);
  if (random.OneIn(3)) place.column_stride = Extreme(random, place.column_stride);
  if (random.OneIn(8)) place.steps.push_back({1, 2, 1});
  if (place.steps.empty()) return;
  ClusterBody::Place::Step& step = random.Pick(place.steps);
  int64_t* const numbers[] = {&step.every, &step.extent, &step.stride};
  int64_t& number = *numbers[random.Below(std::size(numbers))];
  number = Extreme(random, number);
}

void MutateBuffer(Random& random, ClusterBody::Buffer& buffer) {
  if (random.OneIn(2)) buffer.elements = Extreme(random, buffer.elements);
  if (random.OneIn(4)) buffer.dtype = AnyType(random);
  if (random.OneIn(8)) buffer.state = !buffer.state;
}

void MutateOp(Random& random, ClusterBody::Op& op) {
  switch (random.Below(8)) {
    case 0:
      op.kind = static_cast<ClusterOpKind>(random.Below(6));
      break;
    case 1:
      op.function = static_cast<Elementwise>(random.Below(std::size(kElementwiseRows) + 1));
      break;
    case 2:
      op.reduction = static_cast<ReductionKind>(random.Below(4));
      break;
    case 3:
      if (op.operands.empty() || random.OneIn(4)) {
        op.operands.push_back(static_cast<uint32_t>(random.Below(8)));
      } else {
        random.Pick(op.operands) =
            static_cast<uint32_t>(random.OneIn(8) ? random.Below(1 << 20) : random.Below(24));
      }
      break;
    case 4:
      if (op.parameters.empty() || random.OneIn(4)) {
        op.parameters.push_back(ExtremeReal(random, 1));
      } else {
        random.Pick(op.parameters) = ExtremeReal(random, 1);
      }
      break;
    case 5:
      op.draw = static_cast<uint32_t>(random.Below(12));
      op.elements = Extreme(random, op.elements);
      break;
    case 6:
      MutatePlace(random, op.place);
      break;
    default:
      op.dtype = AnyType(random);
  }
}

void MutateBody(Random& random, Seed& seed) {
  auto cluster = std::make_shared<Cluster>(*seed.cluster);
  ClusterBody& body = cluster->body;
  switch (random.Below(6)) {
    case 0: {
      int64_t* const extents[] = {&body.rows, &body.columns, &body.last_columns};
      int64_t& extent = *extents[random.Below(std::size(extents))];
      extent = Extreme(random, extent);
      break;
    }
    case 1:
      if (!body.reads.empty()) MutatePlace(random, random.Pick(body.reads).place);
      if (!body.reads.empty() && random.OneIn(8))
        random.Pick(body.reads).input = static_cast<uint32_t>(random.Below(8));
      if (!body.inputs.empty() && random.OneIn(2)) MutateBuffer(random, random.Pick(body.inputs));
      break;
    case 2:
      if (!body.outputs.empty()) {
        ClusterBody::Output& output = random.Pick(body.outputs);
        if (random.OneIn(2)) output.value = static_cast<uint32_t>(random.Below(24));
        if (random.OneIn(4)) output.result = static_cast<uint32_t>(random.Below(4));
        if (random.OneIn(4)) output.over_rows = !output.over_rows;
        if (random.OneIn(4)) output.reduction = static_cast<ReductionKind>(random.Below(4));
        if (random.OneIn(4)) output.acc = static_cast<int64_t>(random.Below(6)) - 1;
        if (random.OneIn(2)) MutatePlace(random, output.place);
      }
      if (!body.results.empty() && random.OneIn(2)) MutateBuffer(random, random.Pick(body.results));
      break;
    case 3:
      if (!body.ops.empty())
        body.ops.insert(body.ops.begin() + random.Below(body.ops.size()), random.Pick(body.ops));
      break;
    default:
      if (!body.ops.empty()) MutateOp(random, random.Pick(body.ops));
  }
  seed.cluster = std::move(cluster);
}

}  // namespace

void Mutate(Random& random, Seed& seed) {
  for (uint64_t changes = 1 + random.Below(4); changes > 0; --changes) {
    const uint64_t kind = random.Below(seed.attributes.empty() ? 8 : 16);
    if (seed.cluster != nullptr && random.OneIn(2)) {
      MutateBody(random, seed);
    } else if (kind < 3) {
      MutateExtent(random, seed);
    } else if (kind == 3) {
      MutateTensor(random, seed);
    } else if (kind == 4) {
      MutateTypes(random, seed);
    } else if (kind == 5) {
      MutatePlace(random, seed);
    } else if (kind == 6) {
      MutateWorkspace(random, seed);
    } else if (kind == 7) {
      random.OneIn(4) ? MutateCount(random, seed) : MutateTensor(random, seed);
    } else {
      MutateAttribute(random, seed.attributes);
    }
  }
  // Results in the place of an operand are that operand's bytes.
  for (Operand& out : seed.out) {
    if (out.shares < 0) continue;
    const bool gone = out.shares >= static_cast<int>(seed.in.size()) || !seed.in[out.shares].present;
    if (gone || seed.in[out.shares].dtype != out.dtype || seed.in[out.shares].dims != out.dims)
      out.shares = -1;
  }
}

}  // namespace ft::fuzz
