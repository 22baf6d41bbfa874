#include "test/conformance/cluster_maker.h"

namespace ft::conformance {
namespace {

constexpr double kTwoSqrt2OverPi = 1.5957691216057308f, kCubic = 0.044715f;

// Elements in rows of 64.
ClusterMaker Flat(int64_t elements) {
  const int64_t rows = (elements + kClusterLanes - 1) / kClusterLanes;
  ClusterMaker maker(rows, kClusterLanes);
  maker.Space(rows, kClusterLanes, elements - (rows - 1) * kClusterLanes);
  return maker;
}

// x, and what GELU makes of it on the way.
struct Gelu {
  Gelu(ClusterMaker& maker, uint32_t x)
      : bend(maker.Of(Elementwise::kShift,
                      {maker.Of(Elementwise::kScale, {maker.Of(Elementwise::kSquare, {x})}, {kCubic})},
                      {1.0})),
        sigmoid(maker.Of(
            Elementwise::kSigmoid,
            {maker.Of(Elementwise::kScale, {maker.Of(Elementwise::kMul, {x, bend})}, {kTwoSqrt2OverPi})})) {}

  uint32_t bend, sigmoid;
};

uint32_t Wide(ClusterMaker& maker, uint32_t x, DType dtype) {
  return dtype == DType::kF32 ? x : maker.Wide(x);
}

ClusterBody Rounded(ClusterMaker& maker, uint32_t value, DType dtype) {
  if (dtype == DType::kF32)
    maker.Output(value);
  else
    maker.Output(value, dtype);
  return maker.body();
}

}  // namespace

ClusterBody GeluBody(int64_t elements, DType dtype) {
  ClusterMaker maker = Flat(elements);
  const uint32_t x = Wide(maker, maker.Whole(dtype), dtype);
  const Gelu gelu(maker, x);
  return Rounded(maker, maker.Of(Elementwise::kMul, {x, gelu.sigmoid}), dtype);
}

// dy s + x ds, with ds = dy (1 - s) s dz and dz that of z = k x bend.
ClusterBody GeluGradBody(int64_t elements, DType dtype) {
  ClusterMaker maker = Flat(elements);
  const uint32_t x_in = maker.Whole(dtype), dy_in = maker.Whole(dtype);
  const uint32_t x = Wide(maker, x_in, dtype), dy = Wide(maker, dy_in, dtype);
  const Gelu gelu(maker, x);
  const auto mul = [&](uint32_t a, uint32_t b) { return maker.Of(Elementwise::kMul, {a, b}); };
  const auto add = [&](uint32_t a, uint32_t b) { return maker.Of(Elementwise::kAdd, {a, b}); };
  const uint32_t rest = maker.Of(Elementwise::kShift, {maker.Of(Elementwise::kNeg, {gelu.sigmoid})}, {1.0});
  const uint32_t dz = mul(mul(dy, x), mul(rest, gelu.sigmoid));
  const uint32_t du = maker.Of(Elementwise::kScale, {dz}, {kTwoSqrt2OverPi});
  const uint32_t dsquare = maker.Of(Elementwise::kScale, {mul(du, x)}, {kCubic});
  const uint32_t bent = mul(dsquare, maker.Of(Elementwise::kScale, {x}, {2.0}));
  return Rounded(maker, add(add(mul(dy, gelu.sigmoid), mul(du, gelu.bend)), bent), dtype);
}

}  // namespace ft::conformance
