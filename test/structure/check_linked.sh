#!/bin/bash
# The programs given link neither LLVM, MLIR nor Python, directly or through another library. Usage: check_linked.sh PROGRAM...
set -euo pipefail
status=0
for program in "$@"; do
  if ! libraries=$(ldd "$program" 2>&1); then
    echo "structure: cannot read what $program links: $libraries" >&2
    status=1
  elif bad=$(grep -iE 'LLVM|MLIR|clang|python' <<<"$libraries"); then
    echo "structure: $program must link no LLVM, MLIR or Python, but needs:" >&2
    echo "$bad" >&2
    status=1
  else
    echo "structure: $program links $(wc -l <<<"$libraries") libraries, none of LLVM, MLIR or Python"
  fi
done
exit $status
