#include "compiler/codegen/random_bits.h"

#include "compiler/codegen/lane_vectors.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace ft::compiler {
namespace {

using namespace mlir;

constexpr int kRounds = 10;
constexpr int64_t kWords = 4; // of a block
constexpr int64_t kLow = 0xFFFFFFFF;
constexpr int64_t kMultipliers[] = {0xD2511F53, 0xCD9E8D57}, kSteps[] = {0x9E3779B9, 0xBB67AE85};

Lanes alternating(LaneBuilder &b, int64_t count, int64_t even, int64_t odd) {
  llvm::SmallVector<int64_t> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(i % 2 == 0 ? even : odd);
  auto type = VectorType::get({count}, b.getI64Type());
  return {&b, arith::ConstantOp::create(b, b.getLoc(), DenseElementsAttr::get(type, ArrayRef(numbers)))};
}

// `even` in lanes 0, 2 ..., `odd` in the others.
Lanes interleaved(LaneBuilder &b, Lanes even, Lanes odd, int64_t count) {
  llvm::SmallVector<bool> mask;
  for (int64_t i = 0; i < count; ++i)
    mask.push_back(i % 2 == 0);
  auto type = VectorType::get({count}, b.getI1Type());
  Value isEven = arith::ConstantOp::create(b, b.getLoc(), DenseElementsAttr::get(type, mask));
  return Select({&b, isEven}, even, odd);
}

Lanes bitXor(Lanes a, Lanes b) {
  return {a.builder, arith::XOrIOp::create(*a.builder, a.builder->getLoc(), a.value, b.value)};
}

Lanes bitcast(Lanes a, int64_t count, Type element) {
  return {a.builder, vector::BitCastOp::create(*a.builder, a.builder->getLoc(),
                                               VectorType::get({count}, element), a.value)};
}

Lanes shuffled(Lanes a, Lanes b, ArrayRef<int64_t> from) {
  return {a.builder, vector::ShuffleOp::create(*a.builder, a.builder->getLoc(), a.value, b.value, from)};
}

Lanes laneOf(Lanes vector, int64_t i) {
  return {vector.builder, vector::ExtractOp::create(*vector.builder, vector.builder->getLoc(), vector.value,
                                                    ArrayRef<int64_t>{i})};
}

Lanes low(Lanes a) { return a & bitsConstant(a, kLow); }

// The two words of the key in a round.
std::pair<Lanes, Lanes> keysOf(Lanes seed, int round) {
  return {low(seed + bitsConstant(seed, round * kSteps[0])),
          low(shiftRight(seed, 32) + bitsConstant(seed, round * kSteps[1]))};
}

// A block is two lanes of 64 bits, its words from the lowest on. Their products with the multipliers are
// those of the words 0 and 2, and after a round their halves have changed places.
Lanes wordsInVectors(LaneBuilder &b, const RandomKey &key, Lanes block, int64_t words) {
  int64_t count = words / 2;
  llvm::SmallVector<int64_t> numbers, turned;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(i / 2);
  for (int64_t i = 0; i < words; ++i)
    turned.push_back(i / kWords * kWords + kWords - 1 - i % kWords);
  auto type = VectorType::get({count}, b.getI64Type());
  Lanes ofFirst = {&b,
                   arith::ConstantOp::create(b, b.getLoc(), DenseElementsAttr::get(type, ArrayRef(numbers)))};
  Lanes seed = {&b, key.seed};
  Lanes upper = low({&b, key.stream}) | shiftLeft({&b, key.step}, 32);
  Lanes state = interleaved(b, splat(block, count) + ofFirst, splat(upper, count), count);
  Lanes multipliers = alternating(b, count, kMultipliers[0], kMultipliers[1]);
  for (int round = 0; round < kRounds; ++round) {
    auto [even, odd] = keysOf(seed, round);
    Lanes products = bitcast(low(state) * multipliers, words, b.getI32Type());
    products = bitcast(shuffled(products, products, turned), count, b.getI64Type());
    Lanes keys = interleaved(b, splat(even, count), splat(odd, count), count);
    state = bitXor(bitXor(products, shiftRight(state, 32)), keys);
  }
  return bitcast(state, words, b.getI32Type());
}

// Block by block, a word a register.
Lanes wordsInScalars(LaneBuilder &b, const RandomKey &key, Lanes block, int64_t words) {
  Value result = zeros(b, words, b.getI32Type()).value;
  Lanes seed = {&b, key.seed};
  for (int64_t i = 0; i < words / kWords; ++i) {
    Lanes counter = block + bitsConstant(block, i);
    Lanes c[kWords] = {truncated(counter, 32), truncated(shiftRight(counter, 32), 32),
                       truncated({&b, key.stream}, 32), truncated({&b, key.step}, 32)};
    for (int round = 0; round < kRounds; ++round) {
      auto [first, second] = keysOf(seed, round);
      Lanes p = extended(c[0], 64) * bitsConstant(seed, kMultipliers[0]);
      Lanes q = extended(c[2], 64) * bitsConstant(seed, kMultipliers[1]);
      Lanes upperOfP = truncated(shiftRight(p, 32), 32), upperOfQ = truncated(shiftRight(q, 32), 32);
      c[0] = bitXor(bitXor(upperOfQ, c[1]), truncated(first, 32));
      c[1] = truncated(q, 32);
      c[2] = bitXor(bitXor(upperOfP, c[3]), truncated(second, 32));
      c[3] = truncated(p, 32);
    }
    for (int64_t word = 0; word < kWords; ++word)
      result = vector::InsertOp::create(b, b.getLoc(), c[word].value, result,
                                        ArrayRef<int64_t>{i * kWords + word});
  }
  return {&b, result};
}

// Of whole blocks.
Lanes wordsFrom(LaneBuilder &b, const RandomKey &key, Lanes block, int64_t words) {
  return b.has.wideProducts ? wordsInVectors(b, key, block, words) : wordsInScalars(b, key, block, words);
}

} // namespace

Lanes randomBits(LaneBuilder &b, const RandomKey &key, Value first, int64_t width, bool aligned) {
  Lanes element = {&b, first}, block = shiftRight(element, 2);
  Lanes place = element & bitsConstant(element, kWords - 1);
  auto isPlace = [&](int64_t i) { return place == bitsConstant(place, i); };
  if (width == 0) {
    Lanes words = wordsFrom(b, key, block, kWords), word = laneOf(words, 0);
    for (int64_t i = 1; i < kWords; ++i)
      word = Select(isPlace(i), laneOf(words, i), word);
    return word;
  }
  Lanes words = wordsFrom(b, key, block, width);
  if (aligned)
    return words;
  Lanes next = wordsFrom(b, key, block + bitsConstant(block, width / kWords), kWords);
  next = {&b, withLanes(b, words.value, next.value, 0)};
  Lanes result = words;
  for (int64_t i = 1; i < kWords; ++i) {
    auto from = llvm::to_vector(llvm::seq<int64_t>(i, width + i));
    result = Select(isPlace(i), shuffled(words, next, from), result);
  }
  return result;
}

} // namespace ft::compiler
