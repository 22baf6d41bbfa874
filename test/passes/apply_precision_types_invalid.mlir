// RUN: not ft-opt %s --ft-apply-precision=param=fp8 2>&1 | FileCheck %s --check-prefix=PARAM
// RUN: not ft-opt %s --ft-apply-precision=reduce=f32 2>&1 | FileCheck %s --check-prefix=REDUCE
// RUN: not ft-opt %s "--ft-apply-precision=param=fp16 masters=false" 2>&1 | FileCheck %s --check-prefix=MASTERS

// MASTERS: error: only weights in bf16 can do without fp32 masters; param is 'fp16'
// PARAM: error: param is 'fp8'; expected fp32, bf16 or fp16
// REDUCE: error: reduce is 'f32'; expected fp32, bf16 or fp16
