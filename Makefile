# Everything from a bare machine: every target sets up what it needs first. `make help` lists them.

VENV ?= .venv
BIN := $(VENV)/bin
# Touched after a successful install; setup does nothing until one of its prerequisites is newer.
STAMP := $(VENV)/.thalweg-setup
# More arguments for pytest, say "-k name".
PYTEST_ARGS ?=
# Options of the demonstration, say "--act 2 --seconds 60".
DEMO_ARGS ?=

# Two targets may want the system's package manager, which serves one at a time.
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml lab/pyproject.toml constraints.txt scripts/setup-python.sh
	@sh scripts/setup-python.sh "$(VENV)"
	@touch "$@"

.PHONY: setup
setup: $(STAMP) ## Create the virtualenv (VENV, by default .venv) and install everything into it

.PHONY: java
java: ## Check for Java 17 or newer, install it where allowed
	@sh scripts/ensure-java.sh

.PHONY: demo
demo: setup java ## See Thalweg beside plain Spark, in three acts of less than three minutes
	@$(BIN)/thalweg demo $(DEMO_ARGS)

.PHONY: test
test: setup java ## Run the tests: units, properties, doctests, Spark
	@sh scripts/run-tests.sh $(BIN)/python "not cluster and not long and not lab" $(PYTEST_ARGS)

.PHONY: test-lab
test-lab: setup java ## Run the tests of the lab: experiments, benchmarks and the demonstration
	@sh scripts/run-tests.sh $(BIN)/python "lab and not cluster and not long" $(PYTEST_ARGS)

.PHONY: test-long
test-long: setup java ## Compare random queries with an independent engine for some minutes; others each time
	@$(BIN)/python -m pytest -m long $(PYTEST_ARGS)

.PHONY: test-cluster
test-cluster: setup java ## Run the tests that start clusters, servers and drivers of their own, and kill some
	@$(BIN)/python -m pytest -m cluster $(PYTEST_ARGS)

.PHONY: docs
docs: setup ## Make the documentation, a site in build/docs that needs no network
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[docs]"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "Open build/docs/index.html"

.PHONY: lint
lint: setup ## Check style, formatting, types and the import contracts
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

.PHONY: format
format: setup ## Format the code and fix what can be fixed
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

.PHONY: bench
bench: setup java ## List the benchmarks, or run one: make bench NAME=...
	@$(BIN)/thalweg bench $(NAME)

.PHONY: lab
lab: setup java ## Reproduce every figure of the lab, in the quick version
	@$(BIN)/thalweg lab run --all --quick

.PHONY: clean
clean: clean-cache ## Remove caches, builds and Spark's leftovers; keeps the virtualenv
	@rm -rf build dist lab-out .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@rm -rf derby.log metastore_db spark-warehouse
	@find src tests lab -type d -name __pycache__ -prune -exec rm -rf {} +

.PHONY: clean-cache
clean-cache: ## Remove Numba's compiled kernels
	@find src lab/src -type f \( -name '*.nbi' -o -name '*.nbc' \) -delete
