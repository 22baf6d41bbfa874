#!/bin/bash
# Every rule of check.sh must fire on a planted violation, and none on what is allowed. Usage: selftest.sh
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# rule; path; line
PLANTED=(
  'runtime-without-mlir;runtime/executor/a.cc;#include "mlir/IR/Builders.h"'
  'runtime-without-mlir;runtime/executor/a.cc;#include <llvm/ADT/SmallVector.h>'
  'runtime-without-mlir;runtime/plan/a.h;  #  include "dialects/ft/ft.h"'
  'executor-tools-without-mlir;tools/ftexec/main.cc;#include "compiler/pipeline/pipeline.h"'
  'base-sees-nothing;runtime/base/a.cc;#include "runtime/plan/plan.h"'
  'base-sees-nothing;runtime/base/a.cc;#include "runtime/backends/cpu/cpu.h"'
  'memplan-sees-base;runtime/memplan/a.cc;#include "runtime/plan/plan.pb.h"'
  'memplan-sees-base;runtime/memplan/a.cc;#include <google/protobuf/message.h>'
  'plan-sees-base-and-memplan;runtime/plan/a.cc;#include "runtime/device/device.h"'
  'cost-sees-plan;runtime/cost/a.cc;#include "runtime/device/device.h"'
  'dialects-see-mlir;dialects/ft/a.cc;#include "runtime/plan/plan.h"'
  'models-see-dialects;models/families/a.cc;#include "compiler/shard/shard.h"'
  'compiler-sees-plan-and-memplan;compiler/emit/a.cc;#include "runtime/executor/executor.h"'
  'product-without-tests;runtime/backends/cuda/device_code/gpu.h;#include "test/doubles/cuda/launch.h"'
  'device-sees-no-kernel;runtime/device/a.cc;#include "runtime/kernels/rotary_table/operands.h"'
  'operands-on-any-device;runtime/kernels/rotary_table/operands.cc;#include "runtime/backends/cpu/kernel_base.h"'
  'operands-on-any-device;runtime/kernels/rotary_table/operands.cc;#include "runtime/kernels/cluster/cuda.h"'
  'kernels-of-one-device;runtime/kernels/rotary_table/cpu.cc;#include "runtime/backends/cuda/device_code/gpu.h"'
  'cuda-in-its-backend;runtime/kernels/rotary_table/operands.cc;#include <cuda_fp16.h>'
  'cuda-in-its-backend;runtime/executor/a.cc;#include <cuda_runtime.h>'
  'cuda-in-its-backend;compiler/fuse/a.cc;#include <cublas_v2.h>'
  'nccl-in-its-folder;runtime/collective/a.cc;#include <nccl.h>'
  'gloo-in-its-folder;runtime/collective/a.cc;#include <gloo/context.h>'
  'libraries-never-exit;runtime/base/a.cc;  std::abort();'
  'libraries-never-exit;compiler/emit/a.cc;  if (bad) exit(1);'
  'libraries-never-exit;runtime/data/a.cc;  ::_exit (1);  // "quoted"'
  'includes-from-the-root;runtime/data/a.cc;#include "../base/dtype.h"'
  'no-catch-all-file;runtime/data/utils.cc;int x;'
  'stages-apart;compiler/shard/a.cc;#include "compiler/memory/arena.h"'
  'words-of-the-field;runtime/data/a.cc;int Drain();'
  'words-of-the-field;compiler/remat/a.cc;  playLayer(layer);'
  'words-of-the-field;runtime/data/a.cc;struct Routines;'
  "one-reason;runtime/data/a.cc;$(printf 'int x;\n%.0s' {1..401})"
  'pragma-once;runtime/data/a.h;int y;'
)
ALLOWED=(
  'runtime/memplan/a.cc;#include "runtime/base/dtype.h"'
  'runtime/backends/cuda/device/a_test.cc;#include "test/doubles/cuda/launch.h"'
  'runtime/base/a.cc;#include "runtime/base/dtype.h"'
  'runtime/backends/cuda/a.cc;#include <cuda_runtime.h>'
  'runtime/kernels/rotary_table/cuda_device.cu;#include <cuda_fp16.h>'
  'runtime/kernels/matmul/cuda_gelu.cc;#include "runtime/kernels/cluster/cuda.h"'
  'tools/ftexec/a.cc;#include "runtime/backends/cuda/platform.h"'
  'runtime/base/a.cc;#include "runtime/base/cuda_workspace.h"'
  'runtime/collective/nccl/a.cc;#include <nccl.h>'
  'runtime/collective/a.cc;#include "runtime/collective/nccl/create_nccl.h"'
  'runtime/collective/gloo/a.cc;#include <gloo/context.h>'
  'compiler/pipeline/a.cc;#include "compiler/shard/shard.h"'
  'compiler/shard/a.cc;#include "compiler/shard/shard.h"'
  'compiler/schedule/a.cc;#include "compiler/encode/numbering.h"'
  'compiler/emit/a.cc;#include "runtime/plan/plan.pb.h"'
  'runtime/data/a.cc;  // a library must not call exit(1) or abort()'
  'runtime/data/a.cc;  Log("exit(1)"); group->abort(); ncclCommAbort(c); at_exit(f); /* abort() */'
  'runtime/plan/testing/tiny.cc;  std::abort();'
  'runtime/backends/cuda/libraries/a.cc;  variables.home = Variable("HOME");'
  'runtime/data/a_test.cc;  ASSERT_EXIT(exit(3), testing::ExitedWithCode(3), "");'
)

failures=0
fail() { echo "selftest: $*" >&2; failures=$((failures + 1)); }

fresh() {  # a tree with one innocent file
  rm -rf "$work/tree"
  mkdir -p "$work/tree/runtime/base"
  echo '#pragma once' >"$work/tree/runtime/base/dtype.h"
}

plant() { mkdir -p "$work/tree/$(dirname "$1")"; printf '%s\n' "$2" >>"$work/tree/$1"; }

for row in "${PLANTED[@]}"; do
  IFS=';' read -r -d '' rule path line <<<"$row" || true  # of several lines
  fresh
  plant "$path" "$line"
  if out=$("$here/check.sh" "$work/tree" 2>&1); then
    fail "nothing fired on '$line' in $path"
  elif ! grep -qF "[$rule:" <<<"$out"; then
    fail "$rule did not fire on '$line' in $path, but: $out"
  fi
done
for row in "${ALLOWED[@]}"; do
  IFS=';' read -r path line <<<"$row"
  fresh
  plant "$path" "$line"
  out=$("$here/check.sh" "$work/tree" 2>&1) || fail "fired on '$line' in $path: $out"
done
for rule in $(sed -n '/^RULES=(/,/^)/s/^  "\([a-z-]*\);.*/\1/p' "$here/check.sh") stages-apart one-reason pragma-once; do
  # Not by a pipe: grep -q leaves as soon as it knows, and printf may not be done.
  grep -q "^$rule;" <<<"$(printf '%s\n' "${PLANTED[@]}")" || fail "rule $rule has no planted violation"
done
"$here/check_linked.sh" /bin/cat >/dev/null || fail "check_linked.sh refuses /bin/cat"
"$here/check_linked.sh" "${1:-/usr/lib/llvm-22/bin/mlir-opt}" >/dev/null 2>&1 && fail "check_linked.sh accepts mlir-opt"
"$here/check_linked.sh" "$work/no-such-program" >/dev/null 2>&1 && fail "check_linked.sh accepts a missing program"

(( failures == 0 )) && echo "selftest: ${#PLANTED[@]} planted violations found, ${#ALLOWED[@]} allowed lines accepted"
exit $(( failures > 0 ))
