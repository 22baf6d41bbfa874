// RUN: not ft-opt %s --ft-apply-precision=param=fp8 2>&1 | FileCheck %s --check-prefix=PARAM
// RUN: not ft-opt %s --ft-apply-precision=reduce=f32 2>&1 | FileCheck %s --check-prefix=REDUCE

// PARAM: error: param is 'fp8'; expected fp32, bf16 or fp16
// REDUCE: error: reduce is 'f32'; expected fp32, bf16 or fp16
