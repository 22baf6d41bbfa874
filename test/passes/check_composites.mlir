// What composites may be: each edit of a good model is refused at its place.

// RUN: ftc compile %s --strategy=no_shard --dump=schedule | FileCheck %s --check-prefix=SAVED
// SAVED: value = "h.0.soft_cap"

// RUN: sed 's/func.func private @half/func.func @half/' %s > %t.mlir && not ftc compile %t.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=PRIVATE
// PRIVATE: :[[#]]:3: error: composite @half must be private and have a body of one block
// RUN: sed '/@half(%%x/s/ attributes {ft.composite}//' %s > %t.mlir && not ftc compile %t.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=MARK
// MARK: error: 'ft.call' op calls @half, which is no composite; mark it: func.func private @half(...) attributes {ft.composite}
// RUN: sed 's/ft.scale %%x, 0.5 :/ft.call @soft_cap(%%x) : (tensor<2x8x16xf32>) ->/' %s > %t.mlir && not ftc compile %t.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=RECURSION
// RECURSION: error: 'ft.call' op calls @{{half|soft_cap}}, which leads back to this call; a composite cannot call itself
// RUN: sed 's/%%t = ft.tanh %%s : /%%t = ft.get @w : tensor<256x16xf32> \/\//; s/ft.scale %%t, 2.0/ft.scale %%s, 2.0/' %s > %t.mlir && not ftc compile %t.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=READS
// READS: error: 'ft.get' op cannot stand in a composite; it is made of ops that compute, and takes parameters as operands
// RUN: sed 's/ft.call @soft_cap(%%x)/func.call @soft_cap(%%x)/' %s > %t.mlir && not ftc compile %t.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=CALL
// CALL: error: 'func.call' op cannot stand in a model; models are made of the compute ops of dialect ft, and call composites with ft.call
// RUN: sed '/^  func.func private @half/,/^  }/s/f32/bf16/g' %s > %t.mlir && not ftc compile %t.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=BF16
// BF16: error: an operand of a composite is 'tensor<2x8x16xbf16>'; expected tensors of f32, integers or truth values, static and of at most 8 dimensions (--mixed-precision decides where 16 bits go in and out)
// RUN: sed 's/ft.call @soft_cap(%%x)/ft.call @soft_cap(%%x) streams [1]/' %s > %t.mlir && not ftc compile %t.mlir --strategy=no_shard 2>&1 | FileCheck %s --check-prefix=STREAMS
// STREAMS: error: 'ft.call' op has streams, which the compiler numbers; leave them out

module {
  ft.parameter @w : tensor<256x16xf32> = #ft.init<normal, 0.5> {layer = "h.0"}
  func.func private @half(%x: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> attributes {ft.composite} {
    %y = ft.scale %x, 0.5 : tensor<2x8x16xf32>
    return %y : tensor<2x8x16xf32>
  }
  func.func private @soft_cap(%x: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> attributes {ft.composite} {
    %s = ft.call @half(%x) : (tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
    %t = ft.tanh %s : tensor<2x8x16xf32>
    %y = ft.scale %t, 2.0 : tensor<2x8x16xf32>
    return %y : tensor<2x8x16xf32>
  }
  func.func @forward(%tokens: tensor<2x8xi32>, %targets: tensor<2x8xi32>) -> tensor<f32> {
    %rng = ft.input "rng" : tensor<3xi64>
    %w = ft.get @w {layer = "h.0"} : tensor<256x16xf32>
    %x = ft.embedding %tokens, %w {layer = "h.0"} : (tensor<2x8xi32>, tensor<256x16xf32>) -> tensor<2x8x16xf32>
    %y = ft.call @soft_cap(%x) {layer = "h.0"} : (tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
    %z = ft.square %y {layer = "h.0"} : tensor<2x8x16xf32>
    %l = ft.matmul %z, %w transpose_b {layer = "h.0"} : (tensor<2x8x16xf32>, tensor<256x16xf32>) -> tensor<2x8x256xf32>
    %loss = ft.cross_entropy %l, %targets {layer = "h.0"} : (tensor<2x8x256xf32>, tensor<2x8xi32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
