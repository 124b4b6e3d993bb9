# Everything a newcomer needs: `make demo` shows what specdec does, `make test` proves it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# GCC drops the tile configuration that llama.cpp prepares for AMX (llama.cpp pull request 26954):
# the build would crash on such processors.
KERNELS := $(if $(shell grep -s -m1 -o amx_tile /proc/cpuinfo),CXXFLAGS="$(CXXFLAGS) -fno-dse -fno-tree-dse")
DEMO   := Write a Python function that merges two sorted lists into one sorted list, with type hints, a docstring and three doctest examples.

.DEFAULT_GOAL := help
.PHONY: help install models demo test check bench clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP) ## make the environment and build llama.cpp (5 minutes the first time)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: specdec needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@command -v c++ >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null || \
	  { echo "error: llama.cpp is built from source and needs a C++ compiler (Debian: apt install g++)" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing specdec and its tools; the first time this compiles llama.cpp, about 5 minutes"
	@$(KERNELS) $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

models: install ## download the default pair and the small test model (1.7 GB)
	@$(BIN)/specdec pull qwen2.5-coder:1.5b
	@$(BIN)/specdec pull qwen2.5-coder:0.5b
	@$(BIN)/specdec pull smollm2:135m

demo: install ## answer a prompt with a 1.5B model drafted by a 0.5B one, then plainly
	@$(BIN)/specdec run --model qwen2.5-coder:1.5b --draft-model qwen2.5-coder:0.5b \
	  --draft-tokens 4 --temp 0 --max-tokens 160 --compare "$(DEMO)" < /dev/null

test: install ## run the tests on a toy, on tiny GGUFs and on SmolLM2-135M (93 MB)
	@$(BIN)/specdec pull --quiet smollm2:135m > /dev/null
	@$(BIN)/pytest

check: install ## lint, types, and the walls between the layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: install ## does speculation pay on this machine? (a few minutes)
	@$(BIN)/specdec bench --quick

clean: ## remove the environment and caches; models stay
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
