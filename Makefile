# `make` alone prints what there is. Everything runs in a virtual environment inside the checkout.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
unexport PYTHONDONTWRITEBYTECODE  # with it each process compiles all modules: more than half of a worker's start

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP = $(BIN)/python -m pip install -q --disable-pip-version-check
STAMP := $(VENV)/.ready
JARS := $(VENV)/.jars
PROTOS := $(shell find protos -name '*.proto')
WIRE := libs/keelman/api/py.typed

.PHONY: durations release-protos bench explore masters slow help setup protos fmt lint types contracts unit component e2e chaos alone test faults partitions ohara-fuzz java-proofs operations simulation check run lock clean

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(STAMP) $(WIRE) $(JARS) ## virtual environment, Java, Kafka's jars, wire code

$(STAMP): requirements/dev.txt pyproject.toml tools/build_protos.py
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if v >= (3, 11) else f"keelman needs Python 3.11 or newer; {sys.executable} is {v[0]}.{v[1]}: name another with make PYTHON=...")'
	@echo "== virtual environment in $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "== $$(grep -c '==' requirements/dev.txt) Python packages: some minutes, where pip has none kept (PySpark alone: 400 MB)"
	@$(PIP) --require-hashes -r requirements/dev.txt
	@echo "== keelman itself"
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(JARS): $(STAMP) libs/keelman/runtime/kafka_broker.lock
	@echo "== Java, and PostgreSQL for its tests"
	@$(BIN)/python tools/ensure_system.py
	@echo "== Kafka's jars and the archive of their classes"
	@$(BIN)/python -m keelman.broker prepare
	@echo "== archive of Spark's classes: half a minute where there is none"
	@$(BIN)/python -m keelman.spark.archive
	@echo "== Kafka Connect's jars and the archive of their classes"
	@$(BIN)/python -m keelman.connectors.java.archive
	@touch $@

protos: $(STAMP) ## generate the wire code from protos/
	$(BIN)/python tools/build_protos.py

$(WIRE): $(PROTOS) tools/build_protos.py $(STAMP)
	@echo "== wire code from protos"
	@$(BIN)/python tools/build_protos.py 2>/dev/null
	@$(BIN)/python -m compileall -q libs services
	@touch $@

fmt: $(STAMP) ## format everything
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/buf format -w protos

lint: $(STAMP) $(WIRE) ## style of Python and of the wire contract; what is in deploy/; docs/api.md
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code protos
	$(BIN)/buf breaking --against protos/released.binpb
	$(BIN)/helm lint --quiet deploy/helm/keelman
	$(PYTEST) -q tests/unit/repository/test_deploy.py tests/unit/repository/test_api_page.py

release-protos: $(STAMP) ## keep the wire contract as it is now: later changes are checked against it
	$(BIN)/buf build --exclude-source-info -o protos/released.binpb

types: $(STAMP) $(WIRE) ## strict types
	$(BIN)/mypy

contracts: $(STAMP) $(WIRE) ## which package may import which
	PYTHONPATH=libs:services $(BIN)/lint-imports

# Component tests wait for processes more than they compute: three at a time, each of the three with a broker and a Spark
# service that its tests share. Each takes a file when it has no more to do, those that take longest first.
PYTEST := $(BIN)/python -m pytest
BESIDE := --dist loadfile --no-loadscope-reorder

unit: $(STAMP) $(WIRE) ## tests that need nothing
	$(PYTEST) --costs unit -n 2 $(BESIDE) tests/unit tests/property tests/golden tests/simulation

explore: $(STAMP) $(WIRE) ## property tests on random cases, other ones each time
	$(PYTEST) tests/property --hypothesis-profile=default

component: setup ## tests against a real broker, databases and Spark
	$(PYTEST) --costs component -n 3 $(BESIDE) -m 'not fault and not slow' tests/component

masters: setup ## tests on every kind of Spark master; as root
	$(PYTEST) -v tests/component/spark/test_masters.py

e2e: setup ## every process as a user would start it, with faults
	$(PYTEST) --costs e2e -v -n 2 $(BESIDE) -m 'not slow' tests/e2e

chaos: setup ## one fault of each kind while records flow, and the hand-back to Kafka Connect
	$(PYTEST) --costs chaos -v tests/chaos

alone: setup ## component tests that need the machine to themselves
	$(PYTEST) --costs alone -v -m 'fault and not slow' tests/component

slow: setup ## tests that take minutes each, and so are no part of `make test`
	$(PYTEST) -v -m slow tests/component
	$(PYTEST) -v -m slow tests/e2e

test: unit component e2e chaos alone ## all tests; sets itself up on a clean clone; what each file cost is in build/durations.json

durations: $(STAMP) ## what each test file cost in the last `make test`, beside tests/durations.json: [ALL=1] [KEEP=1]
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
simulation: $(STAMP) $(WIRE) ## the control plane on fake time, disturbed by seed; its rules are checked at each step: [SEEDS=200] [FIRST=1]
	PYTHONHASHSEED=0 PYTHONPATH=tests $(BIN)/python -m simulation --seeds '$(SEEDS)' --first '$(or $(FIRST),1)'

SECONDS ?= 60
operations: setup ## random clients and faults on three workers; checks that some order of the operations explains every answer: [SEEDS=3] [FIRST=1] [SECONDS=60]
	PYTHONPATH=tests $(BIN)/python -m chaos.operations --seeds '$(SEEDS)' --first '$(or $(FIRST),1)' --seconds '$(SECONDS)'

check: lint types contracts test ## everything that must be green before a commit lands

bench: setup ## beside Apache Kafka Connect on this machine: [BENCH=name] [ROUNDS=n], a table and build/bench.json
	PYTHONPATH=tests $(BIN)/python -m bench $(BENCH) $(if $(ROUNDS),--rounds $(ROUNDS))

run: setup ## copy a real data set file -> topic -> file: [ONCE=1] [INPUT=path OUTPUT=path] [KEELMAN_HOME=path]
	@INPUT='$(INPUT)' OUTPUT='$(OUTPUT)' ONCE='$(ONCE)' $(BIN)/python -m keelman.cli.demo

lock: ## compile the lock file again: hashes, no index
	$(BIN)/pip-compile -q --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --unsafe-package keelman --all-extras -o requirements/dev.txt pyproject.toml requirements/dev.in
	sed -i '/^# The following packages are considered to be unsafe/d;/^keelman @/,$$d' requirements/dev.txt  # ourselves: installed from the checkout

clean: ## remove what the build made; keeps the virtual environment and caches
	rm -rf build dist libs/keelman/api .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
