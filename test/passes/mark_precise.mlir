// RUN: ft-opt %s --ft-mark-precise | FileCheck %s
// RUN: ft-opt %s --ft-mark-precise --ft-outline-composites --ft-autodiff | FileCheck %s --check-prefix=GRADIENTS

// The router, the head and an adapter; not what comes before them. Their gradients are as precise.

ft.parameter @up : tensor<8x8xf32> = #ft.init<normal, 0.02>
ft.parameter @router : tensor<8x4xf32> = #ft.init<normal, 0.02>
ft.parameter @head : tensor<16x8xf32> = #ft.init<normal, 0.02>
ft.parameter @"up.lora_A.weight" : tensor<2x8xf32> = #ft.init<normal, 0.02>
ft.parameter @"up.lora_B.weight" : tensor<8x2xf32> = #ft.init<normal, 0.02>

// CHECK-LABEL: func.func @forward
// GRADIENTS-LABEL: func.func @train_step
func.func @forward(%x: tensor<6x8xf32>, %targets: tensor<6xi32>) -> tensor<f32> {
  %up = ft.get @up : tensor<8x8xf32>
  %router = ft.get @router : tensor<8x4xf32>
  %head = ft.get @head : tensor<16x8xf32>
  %a = ft.get @"up.lora_A.weight" : tensor<2x8xf32>
  %b = ft.get @"up.lora_B.weight" : tensor<8x2xf32>
  // CHECK: %[[H:.*]] = ft.matmul %{{.*}}, %{{.*}} : (tensor<6x8xf32>, tensor<8x8xf32>)
  %h = ft.matmul %x, %up : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  // CHECK: ft.matmul {{.*}}transpose_b {precise}
  // CHECK: ft.matmul {{.*}}transpose_b {precise}
  %h1 = ft.matmul %x, %a transpose_b : (tensor<6x8xf32>, tensor<2x8xf32>) -> tensor<6x2xf32>
  %h2 = ft.matmul %h1, %b transpose_b : (tensor<6x2xf32>, tensor<8x2xf32>) -> tensor<6x8xf32>
  %y = ft.add %h, %h2 : tensor<6x8xf32>, tensor<6x8xf32>
  // CHECK: %[[R:.*]] = ft.matmul %{{.*}}, %{{.*}} {precise} : (tensor<6x8xf32>, tensor<8x4xf32>)
  %r = ft.matmul %y, %router : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %p = ft.softmax %r : tensor<6x4xf32>
  %ids = ft.argsort %p descending : tensor<6x4xf32> -> tensor<6x1xi32>
  %top = ft.gather_elements %p, %ids : tensor<6x4xf32>, tensor<6x1xi32> -> tensor<6x1xf32>
  %wide = ft.broadcast %top : tensor<6x1xf32> -> tensor<6x8xf32>
  %z = ft.mul %y, %wide : tensor<6x8xf32>, tensor<6x8xf32>
  // CHECK: ft.matmul {{.*}}transpose_b {precise} : (tensor<6x8xf32>, tensor<16x8xf32>)
  %logits = ft.matmul %z, %head transpose_b : (tensor<6x8xf32>, tensor<16x8xf32>) -> tensor<6x16xf32>
  %scaled = ft.scale %logits, 0.5 : tensor<6x16xf32>
  %loss = ft.cross_entropy %scaled, %targets : (tensor<6x16xf32>, tensor<6xi32>) -> tensor<f32>
  // Both gradients of the head, of the router and of what B is multiplied with, that of A: x is no parameter. Not that of @up.
  // GRADIENTS-COUNT-7: phase = "backward", precise}
  // GRADIENTS: ft.matmul %{{.*}}, %{{.*}} transpose_a {phase = "backward"} : {{.*}} -> tensor<8x8xf32>
  return %loss : tensor<f32>
}
