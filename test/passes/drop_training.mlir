// RUN: ftc model gpt2 --layers=1 -o %t.mlir
// RUN: ftc compile %t.mlir --strategy=full_shard --evaluate --sample --dump=optimizer | FileCheck %s
// RUN: ftc compile %t.mlir --strategy=full_shard --mixed-precision=bf16 --evaluate --dump=memory | FileCheck %s --check-prefix=MEMORY

// What trains is gone, with the bodies of updates and the derivatives that only it calls; what is evaluated is as it was.

// CHECK-NOT:   ft.update
// CHECK-NOT:   @train_step
// CHECK-NOT:   #ft.origin<derivative
// CHECK-LABEL: func.func @init
// CHECK-NOT:   @train_step
// CHECK-NOT:   #ft.origin<derivative
// CHECK-LABEL: func.func @eval_step
// CHECK:         ft.linear_cross_entropy
// CHECK-LABEL: func.func @sample_step
// CHECK:         ft.input "sample_position"
// CHECK:         return {{.*}} : tensor<4x256xf32>
// CHECK-NOT:   ft.update

// Parameters in the type that is computed with are all that stays, and the loss says that it counts targets alone.

// MEMORY-NOT:  optimizer_state unit
// MEMORY-NOT:  gradients unit
// MEMORY:      ftx.buffer "transformer.h.0.parameters" parameters unit_slice(@transformer.h.0, 2) persistent
// MEMORY-NOT:  optimizer_state unit
// MEMORY-NOT:  gradients unit
// MEMORY:      ftx.program @init
// MEMORY:      ftx.program @eval_step
// MEMORY:        ftx.output "loss_sum" {{.*}} counted
