# Every target prepares .venv by itself; `make` alone lists them.

PYTHON_FILES := $(wildcard src tests examples benchmarks)
BIN := .venv/bin
APP ?= examples.shop:app
ROUNDS ?= 100
ARGS ?=

# $(call step,name,command): runs the command, and says which step it was when it fails.
define step
	@echo "== $(1)"
	@$(2) || { echo "FAILED: $(1)" >&2; exit 1; }
endef

.DEFAULT_GOAL := help
.PHONY: help setup setup-run run check test lock bench soak clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1\t\2/p' Makefile | while IFS='	' read -r name text; do \
		printf '  make %-7s %s\n' "$$name" "$$text"; done

setup: ## make .venv with the locked requirements
	@scripts/setup dev

setup-run:
	@scripts/setup run

run: setup-run ## run the example app on an embedded database (APP=module:app)
	@$(BIN)/rota dev $(APP) $(ARGS)

check: setup ## lint, formatting, types and layers
	$(call step,ruff check,$(BIN)/ruff check --quiet --output-format concise .)
	$(call step,ruff format,$(BIN)/ruff format --quiet --check --diff .)
	$(call step,mypy,$(BIN)/mypy --no-error-summary $(PYTHON_FILES))
	$(call step,import layers,$(BIN)/lint-imports --no-logo)

test: check ## all checks, then all tests (ARGS="-k name")
	$(call step,test servers,scripts/test-servers)
	$(call step,pytest,$(BIN)/python -m pytest -n 3 --dist loadgroup $(ARGS))

lock: setup ## compile requirements/ from pyproject.toml (ARGS=--upgrade)
	@scripts/lock $(ARGS)

bench: setup ## measure throughput and latency
	@$(BIN)/python -m benchmarks $(ARGS)

soak: setup ## run the simulation with many seeds (ROUNDS=100)
	@$(BIN)/python -m tests.simulation --seeds $(ROUNDS) $(ARGS)

clean: ## remove .venv, caches and build output
	rm -rf .venv .venv-peers .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
