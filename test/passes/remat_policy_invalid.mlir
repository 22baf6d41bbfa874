// RUN: not ft-opt %s --ft-choose-remat="remat=ful" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not ft-opt %s --ft-choose-remat="remat=ops:atention" 2>&1 | FileCheck %s --check-prefix=CLASS
// RUN: not ft-opt %s --ft-choose-remat="remat=every_n:none" 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not ft-opt %s --ft-choose-remat="remat=budget:1000" 2>&1 | FileCheck %s --check-prefix=BUDGET

// NAME: error: unknown recomputation policy 'ful', did you mean 'full'?
// CLASS: error: unknown class of ops 'atention', did you mean 'attention'?
// COUNT: error: recomputation policy 'every_n:none': expected every_n:N, N layers in a group
// BUDGET: error: a budget is met by the compiler's driver, not by this pass
module {}
