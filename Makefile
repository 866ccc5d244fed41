# `make` alone prints what there is. Everything runs in a virtual environment inside the checkout.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
export V
unexport PYTHONDONTWRITEBYTECODE  # with it each process compiles all modules: more than half of a worker's start

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STEP := $(PYTHON) tools/step.py
CACHE := $(or $(KEELMAN_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/keelman)
# What running needs, then what checks and tests need beside it: a file for each step that is done. Steps that need
# nothing of each other are done side by side; an interrupted set-up goes on with the first that is missing.
PACKAGES := $(VENV)/.packages
WIRE := libs/keelman/api/py.typed
RUNS := $(PACKAGES) $(WIRE) $(VENV)/.broker $(VENV)/.spark
CHECKS := $(VENV)/.checks
TESTS := $(RUNS) $(CHECKS) $(VENV)/.servers $(VENV)/.java-classes
SIDE_BY_SIDE = +@$(MAKE) --no-print-directory -j 4
PROTOS := $(shell find protos -name '*.proto')

.PHONY: docs audit release bench-pairs install distclean durations release-protos bench explore masters slow help setup protos fmt lint types contracts unit component systems alone test faults partitions ohara-fuzz java-proofs operations simulation check run lock clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

install: ## what running needs: a virtual environment, Java, Kafka's jars; each step tells how long it took
	$(SIDE_BY_SIDE) $(RUNS)

setup: ## the same, and what checks and tests need beside it
	$(SIDE_BY_SIDE) $(TESTS)

$(VENV)/.uv: requirements/uv.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if v >= (3, 11) else f"keelman needs Python 3.11 or newer; {sys.executable} is {v[0]}.{v[1]}: name another with make PYTHON=...")'
	@test -x $(BIN)/python || $(STEP) "virtual environment in $(VENV)" $(PYTHON) -m venv $(VENV)
	@$(STEP) "installer of packages" sh -c "$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r $< || echo none for this machine: pip is used"
	@touch $@

# $(call packages,FILE): what a lock file has, by uv where there is one for this machine, else by pip. uv takes what its
# cache has without asking the index first: an index whose answers may not be kept would have PySpark built again.
UV := $(BIN)/uv pip install -q --compile-bytecode --python $(BIN)/python --require-hashes
packages = sh -c "if [ -x $(BIN)/uv ]; then $(UV) --offline -r $(1) 2>/dev/null || $(UV) -r $(1); \
	else $(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r $(1); fi"

$(PACKAGES): $(VENV)/.uv requirements/run.txt pyproject.toml tools/build_protos.py
	@$(STEP) "$$(grep -c '==' requirements/run.txt) packages that running needs (PySpark alone: 400 MB)" --into $(VENV) $(call packages,requirements/run.txt)
	@$(STEP) "keelman itself" $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.java: tools/ensure_system.py
	@$(STEP) "Java" env PYTHONPATH=libs $(PYTHON) $< java
	@mkdir -p $(VENV) && touch $@

$(VENV)/.broker: $(PACKAGES) $(VENV)/.java libs/keelman/runtime/kafka_broker.lock
	@$(STEP) "Kafka's jars and the archive of their classes" --into $(CACHE)/jars $(BIN)/python -m keelman.broker prepare
	@touch $@

$(VENV)/.spark: $(PACKAGES) $(VENV)/.java
	@$(STEP) "archive of Spark's classes" $(BIN)/python -m keelman.spark.archive
	@touch $@

$(CHECKS): $(PACKAGES) requirements/dev.txt
	@$(STEP) "$$(grep -c '==' requirements/dev.txt) packages, of which checks and tests need the rest" --into $(VENV) $(call packages,requirements/dev.txt)
	@touch $@

$(VENV)/.servers: tools/ensure_system.py $(VENV)/.java
	@$(STEP) "PostgreSQL and MariaDB, for tests" env PYTHONPATH=libs $(PYTHON) $< databases
	@mkdir -p $(VENV) && touch $@

$(VENV)/.java-classes: $(PACKAGES) $(VENV)/.java $(VENV)/.broker
	@$(STEP) "Kafka Connect's jars and the archive of their classes" --into $(CACHE)/jars $(BIN)/python -m keelman.connectors.java.archive
	@touch $@

protos: $(CHECKS) ## generate the wire code from protos/
	$(BIN)/python tools/build_protos.py

$(WIRE): $(PROTOS) tools/build_protos.py $(PACKAGES)
	@$(STEP) "wire code from protos" $(BIN)/python tools/build_protos.py
	@$(BIN)/python -m compileall -q libs services
	@touch $@

fmt: $(CHECKS) ## format everything
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/buf format -w protos

lint: $(CHECKS) $(WIRE) ## style of Python and of the wire contract; what is in deploy/; links of docs/api.md
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code protos
	$(BIN)/buf breaking --against protos/released.binpb
	$(BIN)/helm lint --quiet deploy/helm/keelman
	$(PYTEST) -q tests/unit/repository/test_deploy.py tests/unit/repository/test_generated_pages.py

# The site has packages of its own, so that nothing else needs them.
DOCS := $(VENV)/docs
$(DOCS)/.packages: requirements/docs.txt $(VENV)/.uv
	@test -x $(DOCS)/bin/python || $(PYTHON) -m venv --without-pip $(DOCS)
	@$(STEP) "$$(grep -c '==' requirements/docs.txt) packages that build the documentation" --into $(DOCS) $(BIN)/python -m pip --python $(DOCS)/bin/python install -q --disable-pip-version-check --require-hashes -r requirements/docs.txt
	@touch $@

docs: $(DOCS)/.packages $(PACKAGES) $(WIRE) ## the documentation as a site in build/site, with the pages that are made from the code; checks its links
	$(BIN)/python tools/build_docs.py $(DOCS)/bin/mkdocs

audit: setup ## open advisories for all packages and jars; fails for one without a note: [OSV_DATABASE=folder]
	@OSV_DATABASE='$(OSV_DATABASE)' $(BIN)/python -m tools.supply.audit

release: $(CHECKS) $(RUNS) docs ## the files of a release in build/release (wheel, its lock and bill of materials, source distribution, container context, chart, protos, documentation), each checked
	$(BIN)/python tools/build_release.py

release-protos: $(CHECKS) ## keep the wire contract as it is now: later changes are checked against it
	$(BIN)/buf build --exclude-source-info -o protos/released.binpb

types: $(CHECKS) $(WIRE) ## strict types
	$(BIN)/mypy

contracts: $(CHECKS) $(WIRE) ## which package may import which
	PYTHONPATH=libs:services $(BIN)/lint-imports

# Component tests wait for processes as much as they compute: several at a time, each of the pytest workers with a broker
# and a Spark service that its tests share. Each takes a file when it has no more to do, those that take longest first.
PYTEST := $(BIN)/python -m pytest
# With SECOND_TRY=1, in .ci/run, failed tests of the parts that start processes are tried once more.
TRIED := $(if $(SECOND_TRY),$(BIN)/python tools/second_try.py) $(PYTEST)
BESIDE := --dist loadfile --no-loadscope-reorder

unit: $(CHECKS) $(WIRE) ## tests that need nothing
	$(PYTEST) --costs unit -n 3 $(BESIDE) tests/unit tests/property tests/golden tests/simulation

explore: $(CHECKS) $(WIRE) ## property tests on random cases, other ones each time
	$(PYTEST) tests/property --hypothesis-profile=default

COMPONENT_AT_ONCE := 4
component: setup ## tests against a real broker, databases and Spark
	$(TRIED) --costs component -n $(COMPONENT_AT_ONCE) $(BESIDE) -m 'not fault and not slow' tests/component

masters: setup ## tests on every kind of Spark master; as root
	$(PYTEST) -v tests/component/spark/test_masters.py tests/component/spark/test_standalone.py \
		tests/component/spark/test_driver_lost.py

SYSTEMS := tests/e2e tests/chaos
SYSTEMS_AT_ONCE := 4
systems: setup ## whole systems as users start them: tests/e2e and tests/chaos, four files at a time: [SYSTEMS=tests/e2e]
	$(TRIED) --costs systems -v -n $(SYSTEMS_AT_ONCE) $(BESIDE) -m 'not slow' $(SYSTEMS)

alone: setup ## component tests that many others beside them would disturb
	$(TRIED) --costs alone -v -n 2 $(BESIDE) -m 'fault and not slow' tests/component

slow: setup ## tests that take minutes each, and so are no part of `make test`
	$(PYTEST) -v -m slow tests/component
	$(PYTEST) -v -m slow tests/e2e

# Tests of whole systems wait most of their time: they run beside the component tests, two files at a time. Three files
# of component tests are enough for two processors then: more only make each other late (docs/decisions/0038).
test: unit setup ## all tests; sets itself up on a clean clone; what each file cost is in build/durations.json
	+$(MAKE) --no-print-directory -j 2 component systems COMPONENT_AT_ONCE=3 SYSTEMS_AT_ONCE=2
	+$(MAKE) --no-print-directory alone

durations: $(CHECKS) ## what each test file cost in the last `make test`, beside tests/durations.json: [ALL=1] [KEEP=1]
	PYTHONPATH=tests $(BIN)/python -m support.costs $(if $(ALL),--all) $(if $(KEEP),--keep)

SEEDS ?= 3
faults: setup ## every fault on every path, with seeds; writes docs/faults.md and build/faults.json: [SEEDS=3] [ONLY=x,y] [RESUME=1]
	$(if $(ONLY),,$(MAKE) ohara-fuzz)
	$(if $(ONLY),,$(MAKE) simulation SEEDS=10000)
	$(if $(ONLY),,$(MAKE) partitions slow)
	PYTHONPATH=tests $(BIN)/python -m chaos.faults --seeds '$(SEEDS)' --only '$(ONLY)' $(if $(RESUME),--resume)

partitions: setup ## as root: every two services cut off from each other for 30 s, in one direction and both; state away for 5 minutes
	KEELMAN_PARTITION_SECONDS=30 $(PYTEST) -v -s tests/component/hosts/test_partitions.py
	KEELMAN_STATE_DOWN_SECONDS=300 $(PYTEST) -v -s tests/component/state/test_state_down.py

ROUNDS_OF_2000 ?= 25
ohara-fuzz: setup ## random requests to the Ohara API, 2,000 in each of so many rounds: [ROUNDS_OF_2000=25]
	KEELMAN_FUZZ_ROUNDS='$(ROUNDS_OF_2000)' KEELMAN_FUZZ_CASES=2000 $(PYTEST) -v tests/component/gateway/ohara/test_fuzz.py

java-proofs: setup ## tests of published Java plugins; writes what is proven into docs/java-plugins.md: [ONLY=word]
	PYTHONPATH=tests $(BIN)/python -m support.java.proofs $(ONLY)

simulation: SEEDS = 200
simulation: $(CHECKS) $(WIRE) ## the control plane on fake time, disturbed by seed; its rules are checked at each step: [SEEDS=200] [FIRST=1]
	PYTHONHASHSEED=0 PYTHONPATH=tests $(BIN)/python -m simulation --seeds '$(SEEDS)' --first '$(or $(FIRST),1)'

SECONDS ?= 60
operations: setup ## random clients and faults on three workers; checks that some order of the operations explains every answer: [SEEDS=3] [FIRST=1] [SECONDS=60]
	PYTHONPATH=tests $(BIN)/python -m chaos.operations --seeds '$(SEEDS)' --first '$(or $(FIRST),1)' --seconds '$(SECONDS)'

check: lint types contracts test ## everything that must be green before a commit lands

bench: setup ## beside Apache Kafka Connect on this machine: [BENCH=name] [ROUNDS=n], a table and build/bench.json
	PYTHONPATH=tests $(BIN)/python -m bench $(BENCH) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-pairs: setup ## this checkout beside another one: OLD=folder [BENCH=name] [ROUNDS=n]
	PYTHONPATH=tests $(BIN)/python -m bench.pairs '$(OLD)' $(BENCH) $(if $(ROUNDS),--rounds $(ROUNDS))

run: install ## copy a real data set file -> topic -> file: [ONCE=1] [INPUT=path OUTPUT=path] [KEELMAN_HOME=path]
	@INPUT='$(INPUT)' OUTPUT='$(OUTPUT)' ONCE='$(ONCE)' $(BIN)/python -m keelman.cli.demo

COMPILE := $(BIN)/pip-compile -q --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host
lock: $(CHECKS) ## compile the lock files again: hashes, no index
	$(COMPILE) -o requirements/uv.txt requirements/uv.in
	$(COMPILE) -o requirements/docs.txt requirements/docs.in
	$(COMPILE) --unsafe-package keelman --all-extras -o requirements/run.txt pyproject.toml requirements/run.in
	$(COMPILE) --unsafe-package keelman --all-extras -c requirements/run.txt -o requirements/wheel.txt pyproject.toml
	$(COMPILE) --unsafe-package keelman --all-extras -c requirements/run.txt -o requirements/dev.txt pyproject.toml requirements/dev.in
	sed -i '/^# The following packages are considered to be unsafe/d;/^keelman @/,$$d' requirements/run.txt requirements/wheel.txt requirements/dev.txt  # ourselves: installed from the checkout

clean: ## remove what the build made; keeps the virtual environment and caches
	rm -rf build dist libs/keelman/api .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

distclean: clean ## remove the virtual environment and keelman's cache of jars and archives too
	rm -rf $(VENV) $(CACHE)
