# Everything from a bare machine: every target sets up what it needs first. `make help` lists them.

VENV ?= .venv
BIN := $(VENV)/bin
# Touched after a successful install; setup does nothing until one of its prerequisites is newer.
STAMP := $(VENV)/.thalweg-setup
# More arguments for pytest, say "-k name".
PYTEST_ARGS ?=
# Options of the demonstration, say "--act 2 --seconds 60".
DEMO_ARGS ?=
# The tests that need nothing but Spark, and no minutes each.
QUICK := not browser and not cluster and not long and not chaos and not delta and not iceberg and not kafka and not soak
# The versions of PySpark that `test-versions` runs on, each in a virtualenv of its own; for Kafka and Delta Lake, the newest
# version that both have jars for, and for Iceberg another. PYTHON=python3.13 makes virtualenvs of that Python.
SPARK_VERSIONS ?= 4.1.4 4.2.0 4.3.0
TABLES_VERSION := 4.2.0
ICEBERG_VERSION := 4.1.4
PYTHON ?=
# In a folder of their own: as an oracle for joins, this DuckDB is too old (0.0 and -0.0 do not join).
TPCH_PACKAGES := duckdb==1.5.5 duckdb-extension-tpch==1.5.5
# How many hostile inputs each test of `fuzz` draws; for how many seconds, from which seed and how often in a chain `chaos` kills.
COUNT ?= 10000
FIRST ?= 0
SECONDS ?= 600
SEED ?= 0
KILLS ?= 6

# Two targets may want the system's package manager, which serves one at a time.
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml lab/pyproject.toml constraints.txt scripts/setup-python.sh
	@sh scripts/setup-python.sh "$(VENV)"
	@touch "$@"

.PHONY: setup
setup: $(STAMP) ## Create the virtualenv (VENV, by default .venv) and install everything into it

.PHONY: java
java: ## Check for Java 17 or newer, install it where allowed
	@sh scripts/ensure-java.sh

.PHONY: tpch
tpch: .tpch ## Install what makes the tables of TPC-H: DuckDB's extension, with the DuckDB of its version

.tpch: | setup
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --target $@ $(TPCH_PACKAGES)

.PHONY: demo
demo: setup java ## See Thalweg beside plain Spark, in three acts of less than three minutes
	@$(BIN)/thalweg demo $(DEMO_ARGS)

.PHONY: test
test: setup java ## Run the tests: units, properties, doctests, Spark
	@sh scripts/run-tests.sh $(BIN)/python "not thorough and $(QUICK)" src tests $(PYTEST_ARGS)

.PHONY: test-thorough
test-thorough: setup java tpch ## Run the tests that try the same in more ways, and take seconds each; CI runs them
	@sh scripts/run-tests.sh $(BIN)/python "thorough and $(QUICK)" src tests $(PYTEST_ARGS)

.PHONY: test-lab
test-lab: setup java ## Run the tests of the lab: experiments, benchmarks and the demonstration
	@sh scripts/run-tests.sh $(BIN)/python "$(QUICK)" lab $(PYTEST_ARGS)

.PHONY: test-browser
test-browser: setup java ## Open the live page in a browser, with queries on Spark; pictures go to build/screenshots
	@sh scripts/ensure-browser.sh build/axe-core
	@$(BIN)/python -m pytest -m browser $(PYTEST_ARGS)

.PHONY: load
load: setup ## Show 1,000 events a second on five open pages for a minute; measures the server and the pages
	@sh scripts/ensure-browser.sh build/axe-core
	@$(BIN)/python -m tests.dashboard.load

.PHONY: test-long
test-long: setup java tpch ## Compare random queries with an independent engine for some minutes; others each time
	@$(BIN)/python -m pytest -m long $(PYTEST_ARGS)

.PHONY: test-cluster
test-cluster: setup java ## Run the tests that start clusters, servers and drivers of their own, and kill some
	@$(BIN)/python -m pytest -m "cluster and not chaos" $(PYTEST_ARGS)

.PHONY: test-kafka
test-kafka: java ## Run filters, joins and a session from Kafka to Kafka, and kill the driver and the broker
	@sh scripts/setup-spark-version.sh .venv-spark-$(TABLES_VERSION) $(TABLES_VERSION)
	@sh scripts/fetch-jars.sh tests/kafka/broker.xml .jars/kafka-broker
	@sh scripts/fetch-jars.sh tests/kafka/connector.xml .jars/kafka-connector
	@.venv-spark-$(TABLES_VERSION)/bin/python -m pytest -m kafka tests/kafka $(PYTEST_ARGS)

.PHONY: test-delta
test-delta: java ## Read, write and look up in tables of Delta Lake
	@sh scripts/setup-spark-version.sh .venv-spark-$(TABLES_VERSION) $(TABLES_VERSION)
	@sh scripts/fetch-jars.sh tests/delta/delta.xml .jars/delta
	@.venv-spark-$(TABLES_VERSION)/bin/python -m pytest -m delta tests/delta $(PYTEST_ARGS)

.PHONY: test-iceberg
test-iceberg: java ## Read, write and look up in tables of Iceberg
	@sh scripts/setup-spark-version.sh .venv-spark-$(ICEBERG_VERSION) $(ICEBERG_VERSION)
	@sh scripts/fetch-jars.sh tests/iceberg/iceberg.xml .jars/iceberg
	@.venv-spark-$(ICEBERG_VERSION)/bin/python -m pytest -m iceberg tests/iceberg $(PYTEST_ARGS)

.PHONY: test-versions
test-versions: java ## Run tests on each supported version of PySpark: those in tests/versions/quick.txt, or ALL=1
	@for version in $(SPARK_VERSIONS); do \
		venv=".venv-spark-$$version$(if $(PYTHON),-$(notdir $(PYTHON)))"; \
		sh scripts/setup-spark-version.sh "$$venv" "$$version" $(PYTHON) && \
		sh scripts/test-version.sh "$$venv" "$(ALL)" $(PYTEST_ARGS) || exit 1; \
	done

.PHONY: fuzz
fuzz: setup ## Give hostile inputs to everything that reads any: COUNT=10000 for each test, from number FIRST=0 on
	@THALWEG_FUZZ_INPUTS=$(COUNT) THALWEG_FUZZ_FIRST=$(FIRST) $(BIN)/python -m pytest -q --timeout=0 tests/fuzz $(PYTEST_ARGS)

.PHONY: chaos
chaos: setup java ## Kill and break things at random points, for SECONDS=600 or so, from SEED=0 on, in chains of KILLS=6
	@THALWEG_CHAOS_SECONDS=$(SECONDS) THALWEG_CHAOS_SEED=$(SEED) THALWEG_CHAOS_KILLS=$(KILLS) \
		$(BIN)/python -m pytest -m chaos tests/chaos tests/spark/test_cluster.py $(PYTEST_ARGS)

.PHONY: chaos-long
chaos-long: setup java ## Kill a hundred times in each way, which takes hours, from SEED=0 on; times go to build/chaos.jsonl
	@mkdir -p build
	@THALWEG_CHAOS_CHAINS=17 THALWEG_CHAOS_KILLS=6 THALWEG_CHAOS_SEED=$(SEED) THALWEG_CHAOS_REPORT=build/chaos.jsonl \
		$(BIN)/python -m pytest -m chaos tests/chaos/test_kills.py $(PYTEST_ARGS)
	@$(BIN)/python -m tests.chaos.report build/chaos.jsonl

.PHONY: soak
soak: setup java ## Run queries for SECONDS=600, and see that what their processes hold does not grow
	@mkdir -p build && rm -f build/soak.jsonl
	@THALWEG_SOAK_SECONDS=$(SECONDS) THALWEG_SOAK_REPORT=build/soak.jsonl $(BIN)/python -m pytest -m soak tests/soak $(PYTEST_ARGS)
	@[ ! -e build/soak.jsonl ] || $(BIN)/python -m tests.soak.looks build/soak.jsonl

.PHONY: docs
docs: setup ## Make the documentation, a site in build/docs that needs no network
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[docs]"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@! grep -rlE '<(script|img|iframe|link)[^>]* (src|href)="(https?:)?//' --include='*.html' build/docs || \
		{ echo "These pages load something from another site: the documentation needs no network."; exit 1; }
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
