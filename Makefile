# From a fresh Debian 12 machine: `make demo` or `make test`, each alone, installs what is missing, builds and does its job.
# See `make help`.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
MAKEFLAGS += --no-print-directory

JOBS ?= $(shell nproc)
LINT_BASE ?= origin/main
# Debian's own, whatever else comes first on PATH.
PYTHON := /usr/bin/python3

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## install the Debian packages that are missing
	@scripts/setup build

build/build.ninja: CMakePresets.json | setup
	@mkdir -p build
	@cmake --preset release -DPython3_EXECUTABLE=$(PYTHON) >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }

.PHONY: build
build: setup build/build.ninja ## build everything; the programs land in build/bin
	@ninja -C build -j $(JOBS)

.PHONY: programs
programs: setup build/build.ninja ## build ftc, ftexec, ftrun and ftckpt alone
	@ninja -C build -j $(JOBS) ftc ftexec ftrun ftckpt

.PHONY: demo
demo: setup build/build.ninja ## train a byte-level transformer with full_shard on 2 ranks on real text
	@ninja -C build -j $(JOBS) ftc ftexec ftrun
	@scripts/setup demo
	@scripts/demo

.PHONY: test
test: build ## all tests; no Python packages and no GPU needed
	@ctest --test-dir build --output-on-failure --no-tests=error -j $(JOBS)

.PHONY: test-whole
test-whole: build ## the tests that look at a part of large tables of ftc tune, with the whole of them (half an hour)
	@FT_WHOLE_TABLE=1 ctest --test-dir build --output-on-failure --no-tests=error -R e2e_tune_large

CHECK = ctest --test-dir build --output-on-failure --no-tests=error -j $(JOBS)
.PHONY: check check-ops check-e2e
check: build ## before any change: IR, passes, rules of the house, pages, losses of PyTorch
	@$(CHECK) -L 'lit|structure|docs|golden'
check-ops: build ## before a change of an op: derivatives, kernels of every kind, code
	@$(CHECK) -R 'gradients|completeness|conformance|code|exact|update_test'
check-e2e: build ## before a change of a phase, the plan or the executor
	@$(CHECK) -R e2e

.PHONY: format-check
format-check: ## clang-format over everything, changing nothing
	@scripts/setup lint
	@scripts/lint format

.PHONY: lint
lint: format-check build ## clang-format over everything, clang-tidy over what changed since LINT_BASE
	@scripts/lint tidy $(LINT_BASE)

.PHONY: format
format: ## rewrite all sources with clang-format
	@scripts/setup lint
	@scripts/lint fix

.PHONY: interop
interop: build ## torchrun, safetensors and transformers of current PyTorch, and TensorBoard, against us (installs them into build/venv)
	@scripts/venv
	@build/venv/bin/python test/interop/run_all.py --jobs=$(JOBS)

.PHONY: browser
browser: build ## the pages of ftc report in Debian's chromium: what pointer, click and keys do, and how quickly
	@scripts/setup browser
	@FT_BIN=build/bin FT_SOURCE=. PYTHONPATH=test/e2e $(PYTHON) -B -m unittest discover --start-directory test/browser --pattern '*_test.py' --verbose

.PHONY: goldens
goldens: ## recompute test/golden/*.json with PyTorch and compare with the files
	@scripts/venv
	@build/venv/bin/python test/golden/make_goldens.py --check

.PHONY: bench
bench: build ## time us and PyTorch alternately; BENCH="WORKLOAD ... --rounds=5" chooses
	@scripts/setup bench
	@scripts/venv
	@$(PYTHON) tools/bench/run.py $(BENCH)

.PHONY: overlap
overlap: build ## measure how much communication prefetching hides over an emulated link (minutes, on a quiet machine)
	@FT_BIN=build/bin FT_SOURCE=. $(PYTHON) -B test/e2e/overlap_test.py

.PHONY: standalone
standalone: setup ## ftexec as one file that needs only the C library (and NVIDIA's for GPUs): build/standalone/bin/ftexec
	@cmake -S . -B build/standalone -G Ninja -DFT_COMPILER=OFF -DFT_TESTS=OFF -DFT_STATIC=ON >build/standalone.log 2>&1 || \
		{ cat build/standalone.log; exit 1; }
	@ninja -C build/standalone -j $(JOBS) ftexec

.PHONY: package
package: ## ft and ft-cuda (where nvcc is) for Debian 12, and a wheel, below build/package; docs/install.md
	@JOBS=$(JOBS) scripts/package

.PHONY: package-check
package-check: ## packages built twice have the same bytes, please lintian and twine, and run in clean trees of Debian 12 (as root)
	@JOBS=$(JOBS) scripts/package-check

.PHONY: spill-report
spill-report: build ## assemble every CUDA kernel, and generated ones, for every architecture; fail when one spills registers (needs nvcc)
	@tools/gpu/spill_report
	@tools/gpu/spill_report --generated=build/bin/ft_ptx_kernels

.PHONY: gpu-check
gpu-check: build ## on a machine with an NVIDIA GPU: prove and measure the CUDA backend (ten minutes)
	@tools/gpu/check

.PHONY: clean
clean: ## remove what was built, and the Python environment
	@rm -rf build build-standalone build-portable
