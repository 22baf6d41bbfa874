#!/bin/bash
# Who may see whom: the folder rules of the project, one row each. Usage: check.sh ROOT
#
# A row: name; folders it holds in (regex on the path); folders exempt (regex, or - for none); what a line must not contain
# (extended regex, on the line without comments and strings for 'code' rows); kind (include | code); why.
# Prints one line for each violation; exit status 1 when there is one. selftest.sh plants a violation of every row.
set -euo pipefail

RULES=(
  "runtime-without-mlir;^runtime/;-;(mlir|mlir-c|llvm|llvm-c|lld|clang|dialects|compiler|models|tools)/;include;the executor links no LLVM and knows no compiler"
  "executor-tools-without-mlir;^tools/(ftexec|ftrun|ftckpt)/;-;(mlir|mlir-c|llvm|llvm-c|dialects|compiler|models)/;include;ftexec, ftrun and ftckpt link no LLVM and know no compiler"
  "base-sees-nothing;^runtime/base/;-;runtime/(plan|cost|memplan|device|kernels|backends|collective|executor|checkpoint|data|metrics)/;include;base is at the bottom"
  "memplan-sees-base;^runtime/memplan/;-;(runtime/(plan|cost|device|kernels|backends|collective|executor|checkpoint|data|metrics)/|google/protobuf|\\.pb\\.h|cuda);include;memplan is shared by compiler and executor and knows neither protobuf nor CUDA"
  "plan-sees-base-and-memplan;^runtime/plan/;-;runtime/(cost|targets|device|kernels|backends|collective|executor|checkpoint|data|metrics)/;include;the compiler sees the plan, so the plan sees no device"
  "cost-sees-plan;^runtime/cost/;-;runtime/(targets|device|kernels|backends|collective|executor|checkpoint|data|metrics)/;include;costs are told of plans, to the compiler as to devices"
  "dialects-see-mlir;^dialects/;-;(runtime/(plan|cost|memplan|device|kernels|backends|collective|executor|checkpoint|data|metrics)|compiler|models|tools)/;include;dialects know MLIR, and runtime/base for sizes that both sides must agree on"
  "models-see-dialects;^models/;-;(runtime/(plan|cost|memplan|device|kernels|backends|collective|executor|checkpoint|data|metrics)|compiler|tools)/;include;a model is a graph and knows no compiler"
  "compiler-sees-plan-and-memplan;^compiler/;-;(runtime/(device|kernels|backends|collective|executor|checkpoint|data|metrics)|models|tools)/;include;the compiler sees dialects, plan, memplan and base"
  "product-without-tests;.;(_test\\.cc|/testing/.*):;\"test/;include;emulators, fakes and references are for tests"
  "device-sees-no-kernel;^runtime/device/;-;runtime/(kernels|backends|collective|executor)/;include;what devices have in common knows none of them"
  "operands-on-any-device;^runtime/kernels/;^runtime/kernels/[a-z_]+/(cpu|cuda);runtime/(backends|kernels/[a-z_]+/(cpu|cuda));include;what operands an op takes does not depend on the device"
  "kernels-of-one-device;^runtime/kernels/[a-z_]+/cpu;-;runtime/(backends/cuda|kernels/[a-z_]+/cuda);include;a kernel for CPUs knows no GPU"
  "cuda-in-its-backend;.;^(runtime/backends/cuda/|runtime/kernels/[a-z_]+/cuda);[<\"](cuda|cublas|cudnn|cufft|cusolver|cusparse|curand|nvrtc|nvml|nvtx|cooperative_groups|thrust/|cub/);include;CUDA headers belong in runtime/backends/cuda and in the device code of kernels"
  "nccl-in-its-folder;.;^runtime/collective/nccl/;[</\"]nccl\\.h;include;NCCL's header belongs in runtime/collective/nccl"
  "gloo-in-its-folder;.;^runtime/collective/gloo/;[<\"]gloo/;include;Gloo's headers belong in runtime/collective/gloo"
  "libraries-never-exit;^(runtime|compiler|dialects|models)/;(_test\\.cc|/testing/.*):;(^|[^A-Za-z0-9_.>])(_exit|_Exit|exit|quick_exit|abort|terminate) *\\(;code;errors are values; a library never ends the process"
  "includes-from-the-root;.;-;\"\\.\\.?/;include;includes are relative to the root of the project"
  "words-of-the-field;.;-;(^|[^A-Za-z])([Dd]rain|[Mm]enus?([^A-Za-z]|\$)|[Rr]outines?([^A-Za-z]|\$)|playLayer|k?Home([^A-Za-z]|\$));code;accumulated, policies, kernels, schedule, placement: the field has words for these"
  "no-catch-all-file;(^|/)(utils?|misc|helpers?|common)\\.(h|cc|cu):;-;.;code;a file is named after its one reason to exist"
)

root=$1
cd "$root"
mapfile -t files < <(find dialects compiler runtime models tools -type f \
  \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) 2>/dev/null | sort)
(( ${#files[@]} )) || { echo "structure: no source under $root" >&2; exit 1; }

# Every line as path:number:text; once the includes alone, once the code without comments and strings.
includes=$(grep -HnE '^[[:space:]]*#[[:space:]]*include' "${files[@]}" || true)
code=$(awk '
  FNR == 1 { block = 0 }
  {
    line = $0
    gsub(/\\\\/, "", line); gsub(/\\"/, "", line); gsub(/"[^"]*"/, "\"\"", line)
    if (block) { if (sub(/^.*\*\//, "", line)) block = 0; else line = "" }
    gsub(/\/\*([^*]|\*[^\/])*\*\//, "", line)
    sub(/\/\/.*/, "", line)
    if (sub(/\/\*.*/, "", line)) block = 1
    print FILENAME ":" FNR ":" line
  }' "${files[@]}")

status=0
report() {  # name, why, violations
  if [[ -n $3 ]]; then
    status=1
    sed "s|\$|    [$1: $2]|" <<<"$3"
  fi
}

for rule in "${RULES[@]}"; do
  IFS=';' read -r name where exempt forbidden kind why <<<"$rule"
  if [[ $kind == include ]]; then lines=$includes; else lines=$code; fi
  report "$name" "$why" "$(awk -v where="${where//\\/\\\\}" -v exempt="${exempt//\\/\\\\}" -v forbidden="${forbidden//\\/\\\\}" '
    {
      split($0, part, ":")
      path = part[1] ":"
      text = substr($0, length(part[1]) + length(part[2]) + 3)
      if (path ~ where && (exempt == "-" || path !~ exempt) && text ~ forbidden) print
    }' <<<"$lines")"
done

# Compiler stages do not include each other; the pipeline alone orders them. Code generation and the terms of the plan are no stages: they
# use them. The search for settings stands above the pipeline and is none either.
report stages-apart "compiler stages do not include each other; compiler/pipeline orders them" "$(awk -F: '
  match($1, /^compiler\/[a-z_]+\//) && match($0, /"compiler\/[a-z_]+\//) {
    included = substr($0, RSTART + 1, RLENGTH - 1)
    if (index($1, "compiler/pipeline/") != 1 && index($1, "compiler/tune/") != 1 && index($1, included) != 1 && included != "compiler/codegen/" && included != "compiler/encode/") print
  }' <<<"$includes")"

# A file has one reason to exist.
report one-reason "a file of the product has at most 400 lines" \
  "$(printf '%s\n' "${files[@]}" | grep -vE '_test\.cc$|/testing/' | xargs -r wc -l | awk '$2 != "total" && $1 > 400 { print $2 ": " $1 " lines" }')"

# Every header is guarded the same way.
report pragma-once "a header starts with #pragma once" \
  "$(printf '%s\n' "${files[@]}" | grep -E '\.(h|cuh)$' | xargs -r grep -L '^#pragma once' || true)"

(( status == 0 )) && echo "structure: ${#files[@]} files keep $(( ${#RULES[@]} + 3 )) rules"
exit $status
