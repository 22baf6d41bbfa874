// RUN: not ft-opt %s --ft-apply-precision=param-dtype=fp8 2>&1 | FileCheck %s --check-prefix=PARAM
// RUN: not ft-opt %s --ft-apply-precision=reduce-dtype=f32 2>&1 | FileCheck %s --check-prefix=REDUCE
// RUN: not ft-opt %s "--ft-apply-precision=param-dtype=fp16 master-weights=false" 2>&1 | FileCheck %s --check-prefix=MASTERS

// MASTERS: error: only weights in bf16 can do without fp32 masters; param-dtype is 'fp16'
// PARAM: error: param-dtype is 'fp8'; expected fp32, bf16 or fp16
// REDUCE: error: reduce-dtype is 'f32'; expected fp32, bf16 or fp16
