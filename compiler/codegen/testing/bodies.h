// Cluster bodies of tests and of the benchmark: RxC for "$M", R for "$R", C for "$C", the element type for
// "$T".
#pragma once

namespace ft::compiler::testing {

// In f32 inside, as composites are.
inline constexpr const char *kLayerNorm = R"(
func.func @f(%x: tensor<$Mx$T>, %w: tensor<$Cxf32>, %b: tensor<$Cxf32>) -> (tensor<$Mx$T>, tensor<$Rxf32>) {
  %f = ft.copy %x : tensor<$Mx$T> -> tensor<$Mxf32>
  %s = ft.reduce "sum" %f over [1] : tensor<$Mxf32> -> tensor<$Rxf32>
  %n = ft.fill $C.0 : tensor<f32>
  %m = ft.div %s, %n : tensor<$Rxf32>, tensor<f32>
  %m1 = ft.reshape %m : tensor<$Rxf32> -> tensor<$Rx1xf32>
  %mm = ft.broadcast %m1 : tensor<$Rx1xf32> -> tensor<$Mxf32>
  %d = ft.sub %f, %mm : tensor<$Mxf32>
  %q = ft.square %d : tensor<$Mxf32>
  %v = ft.reduce "sum" %q over [1] : tensor<$Mxf32> -> tensor<$Rxf32>
  %v1 = ft.div %v, %n : tensor<$Rxf32>, tensor<f32>
  %v2 = ft.shift %v1, 0.00001 : tensor<$Rxf32>
  %r = ft.rsqrt %v2 : tensor<$Rxf32>
  %r1 = ft.reshape %r : tensor<$Rxf32> -> tensor<$Rx1xf32>
  %rr = ft.broadcast %r1 : tensor<$Rx1xf32> -> tensor<$Mxf32>
  %h = ft.mul %d, %rr : tensor<$Mxf32>
  %g = ft.mul %h, %w : tensor<$Mxf32>, tensor<$Cxf32>
  %y = ft.add %g, %b : tensor<$Mxf32>, tensor<$Cxf32> -> tensor<$Mx$T>
  return %y, %m : tensor<$Mx$T>, tensor<$Rxf32>
})";

// Every value in $T.
inline constexpr const char *kRmsNorm = R"(
func.func @f(%x: tensor<$Mx$T>, %z: tensor<$Mx$T>, %w: tensor<$Cx$T>) -> (tensor<$Mx$T>, tensor<$Mx$T>) {
  %a = ft.add %x, %z : tensor<$Mx$T>
  %q = ft.square %a : tensor<$Mx$T>
  %s = ft.reduce "sum" %q over [1] : tensor<$Mx$T> -> tensor<$Rxf32>
  %n = ft.fill $C.0 : tensor<f32>
  %v = ft.div %s, %n : tensor<$Rxf32>, tensor<f32>
  %e = ft.shift %v, 0.00001 : tensor<$Rxf32>
  %r = ft.rsqrt %e : tensor<$Rxf32> -> tensor<$Rx$T>
  %r1 = ft.reshape %r : tensor<$Rx$T> -> tensor<$Rx1x$T>
  %rr = ft.broadcast %r1 : tensor<$Rx1x$T> -> tensor<$Mx$T>
  %h = ft.mul %a, %rr : tensor<$Mx$T>
  %y = ft.mul %h, %w : tensor<$Mx$T>, tensor<$Cx$T>
  return %a, %y : tensor<$Mx$T>, tensor<$Mx$T>
})";

// dx of two levels of sums, and two sums over rows.
inline constexpr const char *kRmsNormGrad = R"(
func.func @f(%dy: tensor<$Mx$T>, %x: tensor<$Mx$T>, %w: tensor<$Cx$T>) -> (tensor<$Mx$T>, tensor<$Cxf32>, tensor<$Cx$T>) {
  %xf = ft.copy %x : tensor<$Mx$T> -> tensor<$Mxf32>
  %q = ft.square %xf : tensor<$Mxf32>
  %s = ft.reduce "sum" %q over [1] : tensor<$Mxf32> -> tensor<$Rxf32>
  %n = ft.fill $C.0 : tensor<f32>
  %v = ft.div %s, %n : tensor<$Rxf32>, tensor<f32>
  %e = ft.shift %v, 0.00001 : tensor<$Rxf32>
  %r = ft.rsqrt %e : tensor<$Rxf32>
  %r1 = ft.reshape %r : tensor<$Rxf32> -> tensor<$Rx1xf32>
  %rr = ft.broadcast %r1 : tensor<$Rx1xf32> -> tensor<$Mxf32>
  %h = ft.mul %xf, %rr : tensor<$Mxf32>
  %g = ft.mul %dy, %w : tensor<$Mx$T>, tensor<$Cx$T> -> tensor<$Mxf32>
  %gh = ft.mul %g, %h : tensor<$Mxf32>
  %t = ft.reduce "sum" %gh over [1] : tensor<$Mxf32> -> tensor<$Rxf32>
  %t1 = ft.div %t, %n : tensor<$Rxf32>, tensor<f32>
  %t2 = ft.reshape %t1 : tensor<$Rxf32> -> tensor<$Rx1xf32>
  %tt = ft.broadcast %t2 : tensor<$Rx1xf32> -> tensor<$Mxf32>
  %c = ft.mul %h, %tt : tensor<$Mxf32>
  %d = ft.sub %g, %c : tensor<$Mxf32>
  %dx = ft.mul %d, %rr : tensor<$Mxf32> -> tensor<$Mx$T>
  %dyh = ft.mul %dy, %h : tensor<$Mx$T>, tensor<$Mxf32> -> tensor<$Mxf32>
  %dw = ft.reduce "sum" %dyh over [0] : tensor<$Mxf32> -> tensor<$Cxf32>
  %most = ft.reduce "max" %dy over [0] : tensor<$Mx$T> -> tensor<$Cx$T>
  return %dx, %dw, %most : tensor<$Mx$T>, tensor<$Cxf32>, tensor<$Cx$T>
})";

// Nothing but sums over rows, which few rows are walked by columns for.
inline constexpr const char *kColumnSums = R"(
func.func @f(%dy: tensor<$Mx$T>, %x: tensor<$Mx$T>, %w: tensor<$Cx$T>) -> (tensor<$Cxf32>, tensor<$Cx$T>) {
  %g = ft.mul %dy, %w : tensor<$Mx$T>, tensor<$Cx$T> -> tensor<$Mxf32>
  %gx = ft.mul %g, %x : tensor<$Mxf32>, tensor<$Mx$T> -> tensor<$Mxf32>
  %dw = ft.reduce "sum" %gx over [0] : tensor<$Mxf32> -> tensor<$Cxf32>
  %most = ft.reduce "max" %dy over [0] : tensor<$Mx$T> -> tensor<$Cx$T>
  return %dw, %most : tensor<$Cxf32>, tensor<$Cx$T>
})";

// Sums over rows that are added to what is there.
inline constexpr const char *kSumsBegun = R"(
func.func @f(%dy: tensor<$Mx$T>, %x: tensor<$Mx$T>, %dw: tensor<$Cxf32>, %db: tensor<$Cx$T>) -> (tensor<$Cxf32>, tensor<$Cx$T>, tensor<$Cxf32>) {
  %gx = ft.mul %dy, %x : tensor<$Mx$T>, tensor<$Mx$T> -> tensor<$Mxf32>
  %w = ft.reduce "sum" %gx over [0] : tensor<$Mxf32> -> tensor<$Cxf32>
  %ww = ft.add %w, %dw : tensor<$Cxf32>, tensor<$Cxf32>
  %b = ft.reduce "sum" %dy over [0] : tensor<$Mx$T> -> tensor<$Cx$T>
  %bb = ft.add %db, %b : tensor<$Cx$T>, tensor<$Cx$T>
  return %ww, %bb, %w : tensor<$Cxf32>, tensor<$Cx$T>, tensor<$Cxf32>
})";

inline constexpr const char *kGelu = R"(
func.func @f(%x: tensor<$Mx$T>) -> tensor<$Mx$T> {
  %p = ft.normal_cdf %x : tensor<$Mx$T>
  %y = ft.mul %x, %p : tensor<$Mx$T>
  return %y : tensor<$Mx$T>
})";

inline constexpr const char *kSoftmax = R"(
func.func @f(%x: tensor<$Mx$T>) -> tensor<$Mx$T> {
  %m = ft.reduce "max" %x over [1] : tensor<$Mx$T> -> tensor<$Rx$T>
  %m1 = ft.reshape %m : tensor<$Rx$T> -> tensor<$Rx1x$T>
  %mm = ft.broadcast %m1 : tensor<$Rx1x$T> -> tensor<$Mx$T>
  %d = ft.sub %x, %mm : tensor<$Mx$T> -> tensor<$Mxf32>
  %e = ft.exp %d : tensor<$Mxf32>
  %s = ft.reduce "sum" %e over [1] : tensor<$Mxf32> -> tensor<$Rxf32>
  %s1 = ft.reshape %s : tensor<$Rxf32> -> tensor<$Rx1xf32>
  %ss = ft.broadcast %s1 : tensor<$Rx1xf32> -> tensor<$Mxf32>
  %y = ft.div %e, %ss : tensor<$Mxf32>, tensor<$Mxf32> -> tensor<$Mx$T>
  return %y : tensor<$Mx$T>
})";

// The negative log of a softmax at an id of each row, and the softmax without it.
inline constexpr const char *kPicked = R"(
func.func @f(%x: tensor<$Mx$T>, %t: tensor<$Rxi32>) -> (tensor<$Rxf32>, tensor<$Mx$T>) {
  %f = ft.copy %x : tensor<$Mx$T> -> tensor<$Mxf32>
  %m = ft.reduce "max" %f over [1] : tensor<$Mxf32> -> tensor<$Rxf32>
  %m1 = ft.reshape %m : tensor<$Rxf32> -> tensor<$Rx1xf32>
  %mm = ft.broadcast %m1 : tensor<$Rx1xf32> -> tensor<$Mxf32>
  %d = ft.sub %f, %mm : tensor<$Mxf32>
  %e = ft.exp %d : tensor<$Mxf32>
  %s = ft.reduce "sum" %e over [1] : tensor<$Mxf32> -> tensor<$Rxf32>
  %i = ft.iota : tensor<$Cxi32>
  %t1 = ft.reshape %t : tensor<$Rxi32> -> tensor<$Rx1xi32>
  %tt = ft.broadcast %t1 : tensor<$Rx1xi32> -> tensor<$Mxi32>
  %q = ft.eq %tt, %i : tensor<$Mxi32>, tensor<$Cxi32>
  %z = ft.fill 0.0 : tensor<f32>
  %h = ft.select %q, %d, %z : tensor<$Mxi1>, tensor<$Mxf32>, tensor<f32>
  %p = ft.reduce "sum" %h over [1] : tensor<$Mxf32> -> tensor<$Rxf32>
  %l = ft.log %s : tensor<$Rxf32>
  %loss = ft.sub %l, %p : tensor<$Rxf32>
  %s1 = ft.reshape %s : tensor<$Rxf32> -> tensor<$Rx1xf32>
  %ss = ft.broadcast %s1 : tensor<$Rx1xf32> -> tensor<$Mxf32>
  %y = ft.div %e, %ss : tensor<$Mxf32>
  %w = ft.select %q, %z, %y : tensor<$Mxi1>, tensor<f32>, tensor<$Mxf32>
  %r = ft.copy %w : tensor<$Mxf32> -> tensor<$Mx$T>
  return %loss, %r : tensor<$Rxf32>, tensor<$Mx$T>
})";

// A function that is a result, and the sum of its exponentials.
inline constexpr const char *kBounded = R"(
func.func @f(%x: tensor<$Mx$T>) -> (tensor<$Mx$T>, tensor<$Rxf32>) {
  %y = ft.tanh %x : tensor<$Mx$T>
  %f = ft.copy %y : tensor<$Mx$T> -> tensor<$Mxf32>
  %m = ft.reduce "max" %f over [1] : tensor<$Mxf32> -> tensor<$Rxf32>
  %m1 = ft.reshape %m : tensor<$Rxf32> -> tensor<$Rx1xf32>
  %mm = ft.broadcast %m1 : tensor<$Rx1xf32> -> tensor<$Mxf32>
  %d = ft.sub %f, %mm : tensor<$Mxf32>
  %e = ft.exp %d : tensor<$Mxf32>
  %s = ft.reduce "sum" %e over [1] : tensor<$Mxf32> -> tensor<$Rxf32>
  return %y, %s : tensor<$Mx$T>, tensor<$Rxf32>
})";

inline constexpr const char *kSwiglu = R"(
func.func @f(%gate: tensor<$Mx$T>, %up: tensor<$Mx$T>) -> tensor<$Mx$T> {
  %s = ft.sigmoid %gate : tensor<$Mx$T>
  %g = ft.mul %gate, %s : tensor<$Mx$T>
  %y = ft.mul %g, %up : tensor<$Mx$T>
  return %y : tensor<$Mx$T>
})";

inline constexpr const char *kAdamW = R"(
func.func @f(%w: tensor<$Mxf32>, %g: tensor<$Mx$T>, %m: tensor<$Mxf32>, %v: tensor<$Mxf32>, %lr: tensor<f32>)
    -> (tensor<$Mxf32>, tensor<$Mxf32>, tensor<$Mxf32>, tensor<$Mx$T>) {
  %m0 = ft.scale %m, 0.9 : tensor<$Mxf32>
  %g0 = ft.scale %g, 0.1 : tensor<$Mx$T> -> tensor<$Mxf32>
  %m1 = ft.add %m0, %g0 : tensor<$Mxf32>
  %q = ft.square %g : tensor<$Mx$T> -> tensor<$Mxf32>
  %v0 = ft.scale %v, 0.95 : tensor<$Mxf32>
  %q0 = ft.scale %q, 0.05 : tensor<$Mxf32>
  %v1 = ft.add %v0, %q0 : tensor<$Mxf32>
  %s = ft.sqrt %v1 : tensor<$Mxf32>
  %e = ft.shift %s, 0.0001 : tensor<$Mxf32>
  %u = ft.div %m1, %e : tensor<$Mxf32>
  %c = ft.scale %w, 0.1 : tensor<$Mxf32>
  %a = ft.add %u, %c : tensor<$Mxf32>
  %d = ft.mul %a, %lr : tensor<$Mxf32>, tensor<f32>
  %w1 = ft.sub %w, %d : tensor<$Mxf32>
  %low = ft.copy %w1 : tensor<$Mxf32> -> tensor<$Mx$T>
  return %w1, %m1, %v1, %low : tensor<$Mxf32>, tensor<$Mxf32>, tensor<$Mxf32>, tensor<$Mx$T>
})";

// What ft.dropout is, a draw for each row and a repeated one.
inline constexpr const char *kRandom = R"(
func.func @f(%x: tensor<$Mx$T>, %rng: tensor<3xi64>) -> (tensor<$Mx$T>, tensor<$Mxi32>, tensor<$Rx1xi32>, tensor<$Mxi32>) {
  %w = ft.random_bits %rng stream 0 : tensor<3xi64> -> tensor<$Mxi32>
  %h = ft.floor_div %w, 256.0 : tensor<$Mxi32>
  %u = ft.remainder %h, 16777216.0 : tensor<$Mxi32>
  %f = ft.convert %u : tensor<$Mxi32> -> tensor<$Mxf32>
  %n = ft.scale %f, 5.9604644775390625e-08 : tensor<$Mxf32>
  %r = ft.fill 0.25 : tensor<f32>
  %k = ft.ge %n, %r : tensor<$Mxf32>, tensor<f32>
  %s = ft.scale %x, 2.0 : tensor<$Mx$T>
  %z = ft.fill 0.0 : tensor<$T>
  %y = ft.select %k, %s, %z : tensor<$Mxi1>, tensor<$Mx$T>, tensor<$T>
  %v = ft.random_bits %rng stream 1 : tensor<3xi64> -> tensor<$Rx1xi32>
  %c = ft.random_bits %rng stream 1 : tensor<3xi64> -> tensor<$Cxi32>
  %a = ft.add %w, %c : tensor<$Mxi32>, tensor<$Cxi32>
  return %y, %w, %v, %a : tensor<$Mx$T>, tensor<$Mxi32>, tensor<$Rx1xi32>, tensor<$Mxi32>
})";

// Conversions, integers, truth values, and a vector that is repeated every few rows (with 6 of them).
inline constexpr const char *kTypes = R"(
func.func @f(%x: tensor<2x3x$Cx$T>, %p: tensor<3x$Cx$T>, %i: tensor<$Cxi32>) -> (tensor<2x3x$Cxi32>, tensor<2x3x$Cxi1>, tensor<2x3xi32>, tensor<2x3x$Cx$T>) {
  %a = ft.add %x, %p : tensor<2x3x$Cx$T>, tensor<3x$Cx$T>
  %k = ft.scale %a, 30.0 : tensor<2x3x$Cx$T>
  %n = ft.convert %k : tensor<2x3x$Cx$T> -> tensor<2x3x$Cxi32>
  %s = ft.add %n, %i : tensor<2x3x$Cxi32>, tensor<$Cxi32>
  %zero = ft.shift %i, 3.0 : tensor<$Cxi32>
  %big = ft.gt %s, %zero : tensor<2x3x$Cxi32>, tensor<$Cxi32>
  %o = ft.convert %big : tensor<2x3x$Cxi1> -> tensor<2x3x$Cxi32>
  %c = ft.reduce "sum" %o over [2] : tensor<2x3x$Cxi32> -> tensor<2x3xi32>
  %f = ft.convert %s : tensor<2x3x$Cxi32> -> tensor<2x3x$Cx$T>
  return %s, %big, %c, %f : tensor<2x3x$Cxi32>, tensor<2x3x$Cxi1>, tensor<2x3xi32>, tensor<2x3x$Cx$T>
})";

} // namespace ft::compiler::testing
