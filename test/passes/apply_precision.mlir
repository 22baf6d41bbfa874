// RUN: ft-opt %s --ft-apply-precision=param-dtype=bf16 --ft-verify-precision | FileCheck %s
// RUN: ft-opt %s "--ft-apply-precision=param-dtype=fp16 reduce-dtype=fp16" --ft-verify-precision | FileCheck %s --check-prefix=HALF
// RUN: ft-opt %s --ft-apply-precision=reduce-dtype=bf16 --ft-verify-precision | FileCheck %s --check-prefix=REDUCE
// RUN: ft-opt %s "--ft-apply-precision=param-dtype=bf16 master-weights=false" --ft-verify-precision | FileCheck %s --check-prefix=ALONE
// With fp32 nothing changes, to the last byte.
// RUN: ft-opt %s -o %t.before
// RUN: ft-opt %s --ft-apply-precision --ft-verify-precision -o %t.after
// RUN: cmp %t.before %t.after

// A unit that is gathered twice and one that is kept until backward; a bias; a norm, the gradient of which is a sum.

// CHECK: ft.unit @block {compute = bf16, elements = 3072 : i64, reduce = f32, residency = #ft.residency<parameters = whole, gathered = released, gradients = whole, optimizer = whole>, working_copy}
// CHECK: ft.unit @head {compute = bf16, elements = 1024 : i64, reduce = f32, residency = #ft.residency<parameters = whole, gathered = until_backward, gradients = whole, optimizer = whole>}
// HALF: ft.unit @block {compute = f16, elements = 3072 : i64, reduce = f16, residency = #ft.residency<parameters = whole, gathered = released, gradients = whole, optimizer = whole>, working_copy}
// Weights in bf16 are all there is: nothing is rounded in a gather.
// ALONE: ft.unit @block {compute = bf16, elements = 3072 : i64, master = bf16, reduce = f32, residency = #ft.residency<parameters = whole, gathered = released, gradients = whole, optimizer = whole>}
// ALONE: ft.unit @head {compute = bf16, elements = 1024 : i64, master = bf16, reduce = f32, residency = #ft.residency<parameters = whole, gathered = until_backward, gradients = whole, optimizer = whole>}
// ALONE: %[[HEAD:.*]] = ft.shard @head : !ft.slice<@head, bf16>
// ALONE-NEXT: ft.gather %[[HEAD]]{{.*}} : !ft.slice<@head, bf16> -> !ft.flat<@head, bf16>
// ALONE: ft.shard @block : !ft.slice<@block, bf16>
// REDUCE: ft.unit @block {elements = 3072 : i64, reduce = bf16, residency = #ft.residency<parameters = whole, gathered = released, gradients = whole, optimizer = whole>}
ft.unit @block {elements = 3072 : i64, residency = #ft.residency<parameters = whole, gathered = released, gradients = whole, optimizer = whole>}
ft.unit @head {elements = 1024 : i64, residency = #ft.residency<parameters = whole, gathered = until_backward, gradients = whole, optimizer = whole>}
// Where the host updates the masters, 16 bits come up once a step, unless gathers take weights from there anyway.
// CHECK: ft.unit @there {compute = bf16, elements = 1024 : i64, reduce = f32, residency = #ft.residency<parameters = whole, gathered = until_backward, gradients = whole, optimizer = whole, host = update>, working_copy}
// CHECK: ft.unit @taken {compute = bf16, elements = 1024 : i64, reduce = f32, residency = #ft.residency<parameters = whole, gathered = until_backward, gradients = whole, optimizer = whole, host = parameters|update>}
ft.unit @there {elements = 1024 : i64, residency = #ft.residency<parameters = whole, gathered = until_backward, gradients = whole, optimizer = whole, host = update>}
ft.unit @taken {elements = 1024 : i64, residency = #ft.residency<parameters = whole, gathered = until_backward, gradients = whole, optimizer = whole, host = parameters|update>}
// Parameters are their masters: f32.
// CHECK: ft.parameter @w : tensor<8x8xf32>
ft.parameter @w : tensor<8x8xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @block}
ft.parameter @b : tensor<8xf32> = #ft.init<constant, 0.0> {offset = 1024 : i64, unit = @block}
ft.parameter @n : tensor<8xf32> = #ft.init<constant, 1.0> {offset = 2048 : i64, unit = @block}
ft.parameter @e : tensor<16x8xf32> = #ft.init<normal, 0.02> {offset = 0 : i64, unit = @head}

// CHECK-LABEL: func.func @init
func.func @init() {
  %rng = ft.input "rng" : tensor<3xi64>
  // CHECK: ft.init @w
  ft.init @w, %rng : tensor<3xi64>
  return
}

// CHECK-LABEL: func.func @train_step
// HALF-LABEL: func.func @train_step
// REDUCE-LABEL: func.func @train_step
func.func @train_step(%tokens: tensor<2x3xi32>, %targets: tensor<2x3xi32>) -> (tensor<f32>, tensor<f32>) {
  // The gather of a unit without working copy rounds the master.
  // CHECK: %[[HEAD:.*]] = ft.shard @head : !ft.slice<@head, f32>
  // CHECK-NEXT: %[[HEADS:.*]] = ft.gather %[[HEAD]]{{.*}} : !ft.slice<@head, f32> -> !ft.flat<@head, bf16>
  // CHECK-NEXT: %[[E:.*]] = ft.view %[[HEADS]][@e] : !ft.flat<@head, bf16> -> tensor<16x8xbf16>
  // REDUCE: ft.gather{{.*}} : !ft.slice<@head, f32> -> !ft.flat<@head, f32>
  %head = ft.shard @head : !ft.slice<@head, f32>
  %heads = ft.gather %head : !ft.slice<@head, f32> -> !ft.flat<@head, f32>
  %e = ft.view %heads[@e] : !ft.flat<@head, f32> -> tensor<16x8xf32>
  // CHECK: %[[X:.*]] = ft.embedding {{.*}} -> tensor<2x3x8xbf16>
  %x = ft.embedding %tokens, %e : (tensor<2x3xi32>, tensor<16x8xf32>) -> tensor<2x3x8xf32>

  // CHECK: %[[BLOCK:.*]] = ft.shard @block : !ft.slice<@block, bf16>
  // CHECK-NEXT: %[[FLAT:.*]] = ft.gather %[[BLOCK]]{{.*}} : !ft.slice<@block, bf16> -> !ft.flat<@block, bf16>
  // HALF: ft.gather{{.*}} : !ft.slice<@block, f16> -> !ft.flat<@block, f16>
  %block = ft.shard @block : !ft.slice<@block, f32>
  %flat = ft.gather %block : !ft.slice<@block, f32> -> !ft.flat<@block, f32>
  %w = ft.view %flat[@w] : !ft.flat<@block, f32> -> tensor<8x8xf32>
  %b = ft.view %flat[@b] : !ft.flat<@block, f32> -> tensor<8xf32>
  %n = ft.view %flat[@n] : !ft.flat<@block, f32> -> tensor<8xf32>
  // CHECK: %[[NORM:.*]] = ft.call @rms_norm(%[[X]], {{.*}} : (tensor<2x3x8xbf16>, tensor<8xbf16>) -> tensor<2x3x8xbf16>
  %norm = ft.call @rms_norm(%x, %n) : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  // CHECK: ft.matmul %[[NORM]], {{.*}} -> tensor<2x3x8xbf16>
  %q = ft.matmul %norm, %w bias %b : (tensor<2x3x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  // Statistics are f32.
  // CHECK: %[[OUT:.*]], %[[LSE:.*]] = ft.attention {{.*}} -> (tensor<2x3x8xbf16>, tensor<2x2x3xf32>)
  // HALF: ft.attention {{.*}} -> (tensor<2x3x8xf16>, tensor<2x2x3xf32>)
  %out, %lse = ft.attention %q, %q, %q heads 2 kv_heads 2 causal : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x2x3xf32>)
  // In host memory, too.
  // CHECK: ft.offload {{.*}} : tensor<2x3x8xbf16> -> !ft.host<tensor<2x3x8xbf16>>
  // CHECK: ft.reload {{.*}} : !ft.host<tensor<2x3x8xbf16>> -> tensor<2x3x8xbf16>
  // CHECK: ft.offload {{.*}} : tensor<2x2x3xf32> -> !ft.host<tensor<2x2x3xf32>>
  %out_there = ft.offload %out : tensor<2x3x8xf32> -> !ft.host<tensor<2x3x8xf32>>
  %out_here = ft.reload %out_there : !ft.host<tensor<2x3x8xf32>> -> tensor<2x3x8xf32>
  %lse_there = ft.offload %lse : tensor<2x2x3xf32> -> !ft.host<tensor<2x2x3xf32>>
  %lse_here = ft.reload %lse_there : !ft.host<tensor<2x2x3xf32>> -> tensor<2x2x3xf32>
  // The gradient of a weight is in the reduce type, that of x is an activation, the loss is a scalar.
  // CHECK: %[[SCALER:.*]] = ft.input "scaler" : tensor<3xf32>
  // CHECK: ft.linear_cross_entropy_loss_grad {{.*}} -> (tensor<f32>, tensor<2x3x8xbf16>, tensor<16x8xf32>)
  // HALF: ft.linear_cross_entropy_loss_grad {{.*}} -> (tensor<f32>, tensor<2x3x8xf16>, tensor<16x8xf16>)
  // REDUCE: ft.linear_cross_entropy_loss_grad {{.*}} -> (tensor<f32>, tensor<2x3x8xf32>, tensor<16x8xbf16>)
  %scaler = ft.input "scaler" : tensor<3xf32>
  %scale = ft.loss_scale %scaler factor 1.0 : (tensor<3xf32>) -> tensor<f32>
  %loss, %dout, %de0 = ft.linear_cross_entropy_loss_grad %out_here, %e, %targets dloss 1.0 times %scale : (tensor<2x3x8xf32>, tensor<16x8xf32>, tensor<2x3xi32>, tensor<f32>) -> (tensor<f32>, tensor<2x3x8xf32>, tensor<16x8xf32>)
  // CHECK: ft.attention_grad {{.*}} tensor<2x2x3xf32>) -> (tensor<2x3x8xbf16>, tensor<2x3x8xbf16>, tensor<2x3x8xbf16>)
  %dq, %dk, %dv = ft.attention_grad %dout, %q, %q, %q, %out_here, %lse_here heads 2 kv_heads 2 causal
    : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x2x3xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>)
  // CHECK: %[[DB:.*]] = ft.reduce "sum" {{.*}} : tensor<2x3x8xbf16> -> tensor<8xf32>
  // CHECK: %[[DW0:.*]] = ft.matmul {{.*}} transpose_a : (tensor<2x3x8xbf16>, tensor<2x3x8xbf16>) -> tensor<8x8xf32>
  // CHECK: %[[DW:.*]] = ft.matmul {{.*}} into %[[DW0]] transpose_a : (tensor<2x3x8xbf16>, tensor<2x3x8xbf16>, tensor<8x8xf32>) -> tensor<8x8xf32>
  // CHECK: ft.matmul {{.*}} transpose_b : (tensor<2x3x8xbf16>, tensor<8x8xbf16>) -> tensor<2x3x8xbf16>
  // REDUCE: ft.matmul {{.*}} transpose_a : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<8x8xbf16>
  %db = ft.reduce "sum" %dq over [0, 1] : tensor<2x3x8xf32> -> tensor<8xf32>
  %dw0 = ft.matmul %norm, %dq transpose_a : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<8x8xf32>
  %dw = ft.matmul %norm, %dk into %dw0 transpose_a : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dnorm = ft.matmul %dv, %w transpose_b : (tensor<2x3x8xf32>, tensor<8x8xf32>) -> tensor<2x3x8xf32>
  // CHECK: %[[DX:.*]]:2 = ft.call @rms_norm.grad({{.*}} -> (tensor<2x3x8xbf16>, tensor<8xf32>)
  // CHECK: ft.mul {{.*}} : tensor<8xbf16>, tensor<8xbf16>
  // CHECK: %[[SUM:.*]] = ft.add %[[DX]]#1, %{{.*}} : tensor<8xf32>, tensor<8xf32>
  %dx, %dn0 = ft.call @rms_norm.grad(%x, %n, %dnorm) parameter_grads [1] : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<8xf32>)
  %nn = ft.mul %n, %n : tensor<8xf32>, tensor<8xf32>
  %dn1 = ft.reduce "sum" %dnorm over [0, 1] : tensor<2x3x8xf32> -> tensor<8xf32>
  %dn = ft.add %dn0, %dn1 : tensor<8xf32>, tensor<8xf32>
  // CHECK: %[[PACK:.*]] = ft.pack %[[DW]], %[[DB]], %[[SUM]] {{.*}} -> !ft.flat<@block, f32>
  // CHECK: ft.reduce_scatter %[[PACK]]{{.*}} : !ft.flat<@block, f32> -> !ft.slice<@block, f32>
  // HALF: ft.pack {{.*}} -> !ft.flat<@block, f16>
  // HALF: ft.reduce_scatter{{.*}} : !ft.flat<@block, f16> -> !ft.slice<@block, f16>
  // HALF: ft.all_reduce{{.*}} : !ft.slice<@block, f16>
  %g = ft.pack %dw, %db, %dn at [@w, @b, @n] : (tensor<8x8xf32>, tensor<8xf32>, tensor<8xf32>) -> !ft.flat<@block, f32>
  %s = ft.reduce_scatter %g : !ft.flat<@block, f32> -> !ft.slice<@block, f32>
  %r = ft.all_reduce %s over replica : !ft.slice<@block, f32>
  // CHECK: ft.embedding_grad {{.*}} : (tensor<2x3xi32>, tensor<2x3x8xbf16>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %de = ft.embedding_grad %tokens, %dx into %de0 : (tensor<2x3xi32>, tensor<2x3x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %ge = ft.pack %de at [@e] : (tensor<16x8xf32>) -> !ft.flat<@head, f32>
  %se = ft.reduce_scatter %ge : !ft.flat<@head, f32> -> !ft.slice<@head, f32>
  %sum0 = ft.sum_squares %r : (!ft.slice<@block, f32>) -> tensor<21xi64>
  %sum = ft.sum_squares %se into %sum0 : (!ft.slice<@head, f32>, tensor<21xi64>) -> tensor<21xi64>
  %norm_of, %c = ft.clip_coefficient %sum loss %loss scaler %scaler {max_norm = 1.0} : (tensor<21xi64>, tensor<f32>, tensor<3xf32>) -> (tensor<f32>, tensor<f32>)
  // CHECK: return {{.*}} : tensor<f32>, tensor<f32>
  return %loss, %norm_of : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @train_micro
func.func @train_micro(%tokens: tensor<2xi32>) {
  // CHECK: ft.reduce "sum" {{.*}} -> tensor<8xf32>
  // CHECK: ft.accumulate {{.*}} : !ft.flat<@block, f32>
  %dw = ft.fill 0.0 : tensor<8x8xf32>
  %x = ft.fill 1.0 : tensor<2x8xf32>
  %db = ft.reduce "sum" %x over [0] : tensor<2x8xf32> -> tensor<8xf32>
  %dn = ft.fill 0.0 : tensor<8xf32>
  %g = ft.pack %dw, %db, %dn at [@w, @b, @n] : (tensor<8x8xf32>, tensor<8xf32>, tensor<8xf32>) -> !ft.flat<@block, f32>
  ft.accumulate %g into "block" : !ft.flat<@block, f32>
  return
}

// CHECK-LABEL: func.func @eval_step
func.func @eval_step(%tokens: tensor<2xi32>, %targets: tensor<2xi32>) -> tensor<2xf32> {
  %head = ft.shard @head : !ft.slice<@head, f32>
  %heads = ft.gather %head : !ft.slice<@head, f32> -> !ft.flat<@head, f32>
  %e = ft.view %heads[@e] : !ft.flat<@head, f32> -> tensor<16x8xf32>
  %x = ft.embedding %tokens, %e : (tensor<2xi32>, tensor<16x8xf32>) -> tensor<2x8xf32>
  // CHECK: ft.linear_cross_entropy {{.*}} : (tensor<2x8xbf16>, tensor<16x8xbf16>, tensor<2xi32>) -> tensor<f32>
  // CHECK: %[[SUM:.*]] = ft.loss_count {{.*}} -> tensor<2xf32>
  // CHECK: ft.all_reduce %[[SUM]]{{.*}} : tensor<2xf32>
  %loss = ft.linear_cross_entropy %x, %e, %targets : (tensor<2x8xf32>, tensor<16x8xf32>, tensor<2xi32>) -> tensor<f32>
  %sum = ft.loss_count %loss, %targets : (tensor<f32>, tensor<2xi32>) -> tensor<2xf32>
  %total = ft.all_reduce %sum over world : tensor<2xf32>
  return %total : tensor<2xf32>
}

func.func private @rms_norm(%x: tensor<2x3x8xf32>, %n: tensor<8xf32>) -> tensor<2x3x8xf32> attributes {ft.composite} {
  %y = ft.mul %x, %n : tensor<2x3x8xf32>, tensor<8xf32>
  return %y : tensor<2x3x8xf32>
}
func.func private @rms_norm.grad(%x: tensor<2x3x8xf32>, %n: tensor<8xf32>, %dy: tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<8xf32>) attributes {ft.composite} {
  %dx = ft.mul %dy, %n : tensor<2x3x8xf32>, tensor<8xf32>
  %p = ft.mul %dy, %x : tensor<2x3x8xf32>
  %dn = ft.reduce "sum" %p over [0, 1] : tensor<2x3x8xf32> -> tensor<8xf32>
  return %dx, %dn : tensor<2x3x8xf32>, tensor<8xf32>
}
