// RUN: ft-opt %s --ft-apply-precision=param-dtype=bf16 --split-input-file --verify-diagnostics

ft.parameter @p : tensor<8xf32> = #ft.init<normal, 0.02>

func.func @train_step() -> tensor<8xf32> {
  // expected-error @below {{'ft.get' op reads a parameter that has no place yet; run ft-insert-collectives first}}
  %p = ft.get @p : tensor<8xf32>
  return %p : tensor<8xf32>
}
