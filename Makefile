# Every target prepares .venv by itself; `make` alone lists them.

PYTHON_FILES := $(wildcard src tests examples benchmarks)
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
JOBS ?= 4
APP ?= examples.shop:app
ROUNDS ?= 100
ARGS ?=

# $(call step,name,command): runs the command, and says which step it was when it fails.
define step
	@echo "== $(1)"
	@$(2) || { echo "FAILED: $(1)" >&2; exit 1; }
endef

.DEFAULT_GOAL := help
.PHONY: help setup setup-run run check lint format types layers ui ui-check quick test compiled tests browser-tests prove lock bench soak clean

# Without compiled files every process of a test run would compile the same modules again.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1\t\2/p' Makefile | while IFS='	' read -r name text; do \
		printf '  make %-7s %s\n' "$$name" "$$text"; done

setup: ## make .venv with the locked requirements
	@scripts/setup dev

setup-run:
	@scripts/setup run

run: setup-run ## run the example app and the HTTP API on an embedded database (APP=module:app)
	@$(BIN)/rota dev $(APP) --directory examples $(ARGS)

check: setup ## lint, formatting, types and layers
	@$(MAKE) --no-print-directory --jobs 4 lint format types layers ui-check

lint:
	$(call step,ruff check,$(BIN)/ruff check --quiet --output-format concise .)

format:
	$(call step,ruff format,$(BIN)/ruff format --quiet --check --diff .)

types:
	$(call step,mypy,$(BIN)/mypy --no-error-summary $(PYTHON_FILES))

layers:
	$(call step,import layers,$(BIN)/lint-imports --no-logo)

ui: setup ## build the pages of the server again, and their types of the API
	@$(BIN)/python ui/build.py --strict
	@scripts/ui-types

# Without npm there are no pages, and nothing to check.
ui-check:
	$(call step,types and lint of ui/,if command -v npm >/dev/null; then scripts/ui-types && npm --prefix ui --silent run check; fi)

quick: setup ## the tests without processes and PostgreSQL, for the inner loop
	$(call step,pytest,$(PYTEST) -n 2 -m "quick and not prove" $(ARGS))

# mypy uses one core for half a minute, so the tests begin beside it.
test: setup ## all checks, and all tests but the long proofs (ARGS="-k name")
	@$(MAKE) --no-print-directory --jobs 5 compiled lint format layers ui-check
	$(call step,test servers,scripts/test-servers)
	@$(MAKE) --no-print-directory --jobs 3 types browser-tests tests

# Otherwise each of the processes of `tests` would compile the same files again in a fresh checkout.
compiled:
	@$(PYTEST) --collect-only --quiet --ignore tests/browser >/dev/null || true

tests:
	$(call step,pytest,$(PYTEST) -n $(JOBS) --dist loadgroup -m "not prove" --ignore tests/browser $(ARGS))

# Playwright runs an event loop of its own, so tests in a browser have a process of their own. They run beside the other
# tests, and what they print is shown at their end.
browser-tests:
	$(call step,tests in a browser,shown=$$(mktemp); $(PYTEST) -m "not prove" tests/browser >$$shown 2>&1; \
		code=$$?; cat $$shown; rm -f $$shown; (exit $$code))

prove: check ## the long proofs that make test leaves out (before a release)
	$(call step,test servers,scripts/test-servers)
	$(call step,pytest,$(PYTEST) -n $(JOBS) --dist loadgroup -m prove --ignore tests/browser $(ARGS))
	$(call step,tests in a browser,$(PYTEST) -m prove tests/browser)

lock: setup ## compile requirements/ from pyproject.toml (ARGS=--upgrade)
	@scripts/lock $(ARGS)

bench: setup ## measure throughput and latency
	@$(BIN)/python -m benchmarks $(ARGS)

soak: setup ## run the simulation with many seeds (ROUNDS=100)
	@$(BIN)/python -m tests.simulation --seeds $(ROUNDS) $(ARGS)

clean: ## remove .venv, caches and build output
	rm -rf ui/node_modules ui/build ui/src/api/schema.d.ts src/rota/api/pages/swagger src/rota/api/pages/dashboard .venv .venv-peers .venv-prefect .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
