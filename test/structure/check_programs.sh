#!/bin/bash
# check_programs.sh BUILD CUDA PROGRAM...: what `make demo` builds is what it runs: nothing of tests goes into the programs, and
# nothing that nvcc compiles unless CUDA is true (FT_CUDA_PROGRAMS).
set -euo pipefail
build=$1 cuda=$2
shift 2
inputs=$(ninja -C "$build" -t inputs "$@" | grep -v '^ninja: ')
[[ -n $inputs ]] || { echo "ninja knows no inputs of: $*"; exit 1; }
status=0
refuse() {  # pattern, what
  local found
  if found=$(grep -E "$1" <<<"$inputs"); then
    echo "programs are built from $2:"; head -n 5 <<<"$found"; status=1
  fi
}
refuse '_test\.|gtest|gmock|emulat|/testing/|precompiled_test' 'what belongs to tests'
[[ $cuda == TRUE ]] || refuse '\.cu(\.o)?$|ft_cuda_device_code|ft_cuda_provider' 'CUDA, although no driver of a GPU was found'
exit $status
