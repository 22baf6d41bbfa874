#!/bin/bash
# One golden test: trains a debug preset for 20 steps from the weights of weights.py and compares with PyTorch's numbers.
#
#   run_golden.sh BIN_DIR PYTHON GOLDEN WORLD STRATEGY [MODEL_OPTION ... --] [COMPILE_OPTION ...]
#
# GOLDEN is a model, with or without a precision: gpt2_bf16.
set -euo pipefail
bin=$1 python=$2 golden=$3 world=$4 strategy=$5
shift 5
options=()
while [[ " $* " == *" -- "* ]]; do
  if [[ $1 != -- ]]; then options+=("$1"); fi
  shift
done
model=${golden%_bf16*}
model=${model%_fp16}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" "$here/weights.py" "$model" -o "$work/init.safetensors"
"$bin/ftc" model "$model" --preset=debug "${options[@]}" -o "$work/model.mlir"
data=$here/corpus.txt
"$python" "$here/weights.py" "$model" --data -o "$work/data.safetensors"
if [[ -e $work/data.safetensors ]]; then data=$work/data.safetensors; fi
"$bin/ftc" compile "$work/model.mlir" --strategy="$strategy" --optimizer=adamw --betas=0.9,0.95 --eps=1e-8 \
  --weight-decay=0.1 --clip=1.0 "$@" -o "$work/plan.bin"
launch=()
if (( world > 1 )); then launch=("$bin/ftrun" --standalone "--nproc-per-node=$world"); fi
"${launch[@]}" "$bin/ftexec" "$work/plan.bin" --data="$data" --steps=20 --lr=1e-3 --seed=42 --shuffle=off \
  --threads=1 --init="$work/init.safetensors" --save-weights="$work/final.safetensors" \
  --metrics="$work/metrics.jsonl" --progress=off
weights=()
if [[ $golden == "$model" ]]; then weights=(--weights="$work/final.safetensors"); fi
"$python" "$here/compare.py" "$work/metrics.jsonl" "$here/$golden.json" "--world=$world" "${weights[@]}"
