// RUN: ft-opt %s --ft-form-updates | FileCheck %s

// Types are put around the arithmetic, which stays in f32: gradients are widened, weights rounded, a working copy is one more
// result. A coefficient that is NaN selects what was there. Units that are alike have one cluster.

ft.unit @a {elements = 1024 : i64}
ft.unit @b {elements = 1024 : i64}
ft.unit @c {compute = bf16, elements = 1024 : i64, reduce = bf16, working_copy}
ft.unit @d {compute = bf16, elements = 1024 : i64, master = bf16}

// CHECK-NOT: @step(
func.func private @step(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %m: tensor<1024xf32>, %clip: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>) attributes {ft.update} {
  %0 = ft.mul %g, %clip : tensor<1024xf32>, tensor<f32>
  %1 = ft.add %m, %0 : tensor<1024xf32>
  %2 = ft.sub %p, %1 : tensor<1024xf32>
  return %2, %1 : tensor<1024xf32>, tensor<1024xf32>
}

// CHECK-LABEL: func.func @train_step
func.func @train_step(%a: !ft.slice<@a, f32>, %b: !ft.slice<@b, f32>, %c: !ft.slice<@c, bf16>, %d: !ft.slice<@d, f32>, %s: tensor<2x1xf32>, %rng: tensor<3xi64>, %t: tensor<i64>) {
  // CHECK: ft.update @a by @[[PLAIN:[a-z_0-9]+]](
  ft.update @a by @step(%a, %s) states ["m"] : !ft.slice<@a, f32>, tensor<2x1xf32>
  // CHECK: ft.update @b by @[[PLAIN]](
  ft.update @b by @step(%b, %s) states ["m"] : !ft.slice<@b, f32>, tensor<2x1xf32>
  // CHECK: ft.update @c by @[[COPY:[a-z_0-9]+]](
  ft.update @c by @step(%c, %s) states ["m"] : !ft.slice<@c, bf16>, tensor<2x1xf32>
  // CHECK: ft.update @d by @[[ALONE:[a-z_0-9]+]](
  ft.update @d by @step(%d, %s) states ["m"] : !ft.slice<@d, f32>, tensor<2x1xf32>
  // CHECK: ft.update @d by @[[BEHIND:[a-z_0-9]+]](
  ft.update @d by @step(%d, %s, %rng, %t) states ["m"] : !ft.slice<@d, f32>, tensor<2x1xf32>, tensor<3xi64>, tensor<i64>
  return
}

// CHECK:      func.func private @[[PLAIN]](%[[G:.*]]: tensor<1024xf32>, %[[P:.*]]: tensor<1024xf32>, %[[M:.*]]: tensor<1024xf32>, %[[CLIP:.*]]: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>) attributes {ft.cluster} {
// CHECK-NEXT:   %[[S:.*]] = ft.mul %[[G]], %[[CLIP]]
// CHECK-NEXT:   %[[M1:.*]] = ft.add %[[M]], %[[S]]
// CHECK-NEXT:   %[[P1:.*]] = ft.sub %[[P]], %[[M1]]
// CHECK-NEXT:   %[[NAN:.*]] = ft.ne %[[CLIP]], %[[CLIP]]
// CHECK-NEXT:   %[[P2:.*]] = ft.select %[[NAN]], %[[P]], %[[P1]]
// CHECK-NEXT:   %[[M2:.*]] = ft.select %[[NAN]], %[[M]], %[[M1]]
// CHECK-NEXT:   return %[[P2]], %[[M2]]

// CHECK:      func.func private @[[COPY]](%[[G:.*]]: tensor<1024xbf16>, %{{.*}}: tensor<1024xf32>, %{{.*}}: tensor<1024xf32>, %{{.*}}: tensor<f32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xbf16>)
// CHECK-NEXT:   ft.copy %[[G]] : tensor<1024xbf16> -> tensor<1024xf32>
// CHECK:        %[[P2:.*]] = ft.select
// CHECK:        %[[ROUNDED:.*]] = ft.copy %[[P2]] : tensor<1024xf32> -> tensor<1024xbf16>
// CHECK-NEXT:   return %[[P2]], %{{.*}}, %[[ROUNDED]]

// CHECK:      func.func private @[[ALONE]](%{{.*}}: tensor<1024xf32>, %[[P:.*]]: tensor<1024xbf16>, {{.*}} -> (tensor<1024xbf16>, tensor<1024xf32>)
// CHECK-NEXT:   ft.copy %[[P]] : tensor<1024xbf16> -> tensor<1024xf32>

// Rounded behind the body.
// CHECK:      func.func private @[[BEHIND]](%{{.*}}: tensor<1024xf32>, %{{.*}}: tensor<1024xbf16>, {{.*}} -> (tensor<1024xf32>, tensor<1024xf32>)
