# What a user and a developer type. Needs make, git and Python 3.11 or newer with venv; everything
# else is installed into .venv. `make help` lists the targets.

VENV := .venv
VENV40 := .venv-spark40
VENV43 := .venv-spark43
VENV_BENCH := .venv-bench
VENV_DOCS := .venv-docs
RUN := $(VENV)/bin/
export PYTHON
# A make that another one starts says no more than its targets do.
MAKEFLAGS += --no-print-directory
# Plain text where the terminal shows no colors.
ifeq ($(filter-out dumb unknown,$(TERM)),)
export NO_COLOR := 1
endif
# What `make demo` hands on.
DEMO_OPTIONS := $(if $(ROWS),--rows $(ROWS)) $(if $(STREAMS),--streams $(STREAMS)) \
  $(if $(APPS),--apps $(APPS)) $(if $(BATCHES),--batches $(BATCHES)) $(if $(UPSERT),--upsert) $(OPTIONS)
# What `make bench` hands on.
BENCH_OPTIONS := $(if $(SCENARIO),--scenario $(SCENARIO)) $(if $(SYSTEMS),--systems $(SYSTEMS)) \
  $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(QUICK),--quick) $(if $(PROFILE),--profile) $(OPTIONS)
.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## /  make \1|/p' Makefile | column -t -s '|' 2>/dev/null \
	  || sed -n 's/^\([a-z-]*\):[^#]*## /  make \1: /p' Makefile

.PHONY: demo
demo: install ## many Spark streams into one table, checked by other readers; ROWS=, STREAMS=, CATALOG=rest|postgres|hive, UPSERT=1
	@$(RUN)$(if $(CATALOG),python -m tests.demo '$(CATALOG)',frazil demo) $(DEMO_OPTIONS)

.PHONY: install
install: ## the virtual environment .venv; PYTHON= chooses the interpreter
	@sh tools/install.sh $(VENV) requirements.lock

.PHONY: test
test: install ## the tests: real servers, Spark, both Spark releases
	@$(RUN)python tools/run_tests.py

.PHONY: test-servers
test-servers: install install-spark40 install-spark43 install-docs heavy-jars azurite class-archive ## tests that `make test` has no time for: heavy servers, kills at each call, the image, Spark 4.0 and 4.3
	@$(RUN)python tools/run_tests.py heavy spark43-all spark40

.PHONY: trino
trino: install jars ## Trino 476 reads and writes beside Frazil, through each catalog that both have; needs a JDK 24 or newer
	@$(RUN)python -m tests.support.builders.trino_files
	@$(RUN)python tools/run_tests.py trino

.PHONY: install-spark40
install-spark40: install
	@sh tools/install.sh $(VENV40) requirements-spark40.lock $(VENV)

.PHONY: install-spark43
install-spark43: install
	@sh tools/install.sh $(VENV43) requirements-spark43.lock $(VENV)

.PHONY: install-docs
install-docs: install
	@sh tools/install.sh $(VENV_DOCS) requirements-docs.lock $(VENV)

.PHONY: jars
jars: install
	@$(RUN)python -m tests.support.builders.jars

.PHONY: heavy-jars
heavy-jars: install
	@$(RUN)python -m tests.support.builders.jars --heavy

.PHONY: class-archive
class-archive: install
	@$(RUN)python -m tests.support.builders.class_archive

.PHONY: azurite
azurite: install
	@$(RUN)python -m tests.support.builders.programs azurite

.PHONY: promtool
promtool: install
	@$(RUN)python -m tests.support.builders.programs promtool

.PHONY: check
check: install ## format, lint, types, import contracts and the quick tests
	@$(MAKE) -j2 -O lint types contracts quick

.PHONY: lint
lint: install
	@$(RUN)ruff format --check --quiet .
	@$(RUN)ruff check --quiet .

.PHONY: types
types: install
	@$(RUN)mypy

.PHONY: contracts
contracts: install
	@$(RUN)lint-imports

.PHONY: quick
quick: install
	@$(RUN)python tools/run_tests.py quick

.PHONY: bench
bench: install ## Frazil beside Iceberg Java and PyIceberg; SCENARIO=, SYSTEMS=, ROUNDS=, QUICK=1, PROFILE=1
	@sh tools/install.sh $(VENV_BENCH) requirements-bench.lock $(VENV)
	@$(VENV_BENCH)/bin/python -m bench $(BENCH_OPTIONS)

.PHONY: bench-spark
bench-spark: install jars ## writes of Spark beside Iceberg's runtime and Spark's Parquet writer; ROUNDS=, OPTIONS="--parts writes"
	@$(RUN)python -m bench.spark $(if $(ROUNDS),--rounds $(ROUNDS)) $(OPTIONS)

.PHONY: conformance
conformance: install ## what Iceberg Java says of its tables and values, against Frazil; DIR= another folder
	@$(RUN)python -m tests.conformance $(if $(DIR),'$(DIR)')

.PHONY: conformance-plants
conformance-plants: install ## wrong answers to operations, planted: how many `make conformance` notices; EVERY=10: in each 10th case
	@$(RUN)python -m tests.conformance.operations.plants $(EVERY)

.PHONY: expected-differences
expected-differences: install ## write anew in which operations Frazil differs from Iceberg Java as expected, to be reviewed
	@$(RUN)python -m tests.conformance.operations.expected

.PHONY: java-operations
java-operations: install ## ask Iceberg Java anew for its answers to random operations, and pack them for `make conformance`
	@$(RUN)python -m tests.conformance.operations.pack $(OPTIONS)

.PHONY: fuzz
fuzz: install ## damaged and hostile bytes against every reader; SECONDS=, SEED=, TARGET=
	@$(RUN)python -m tests.fuzz $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) $(TARGET)

.PHONY: corpus
corpus: install ## a thousand hostile requests to a running committer; AGAINST= its home, OPTIONS="--only bound"
	@$(RUN)python -m tests.corpus --against $(AGAINST) $(OPTIONS)

.PHONY: first-hour
first-hour: jars ## the README and each how-to, typed as they stand there; PAGE=, OPTIONS=--update: new transcripts
	@$(RUN)python -m tests.first_hour $(OPTIONS) $(PAGE)

.PHONY: mutants
mutants: install ## break the committer in many small ways, and see the tests notice each; NAME="one another"
	@$(RUN)python -m tests.mutants $(NAME)

.PHONY: simulate
simulate: install ## the whole service in virtual time under faults; SEEDS=, FIRST_SEED=, JOBS=, OPTIONS="--replay 7 --shrink"
	@PYTHONHASHSEED=0 $(RUN)python -m tests.simulation $(if $(SEEDS),--seeds $(SEEDS)) \
	  $(if $(FIRST_SEED),--first-seed $(FIRST_SEED)) $(if $(JOBS),--jobs $(JOBS)) $(OPTIONS)

.PHONY: chaos
chaos: jars ## real processes and servers, each fault at each of the first calls; CALLS=3
	@FRAZIL_TEST_CHAOS=$(or $(CALLS),3) $(RUN)python -m pytest -v -s \
	  tests/integration/test_committer_dies.py tests/integration/test_committer_stopped.py \
	  tests/integration/test_disk_full.py tests/integration/test_faulty_servers.py \
	  tests/integration/test_redis_goes_back.py tests/integration/test_killed_beside_expiry.py

.PHONY: soak
soak: install ## real processes under load and faults; MINUTES=, SEED=, OPTIONS="--rate 80"; SCENARIO=backlog|transactions, CATALOG=
	@sh tools/install.sh $(VENV_BENCH) requirements-bench.lock $(VENV)
	@$(VENV_BENCH)/bin/python -m tests.soak $(if $(MINUTES),--minutes $(MINUTES)) \
	  $(if $(SEED),--seed $(SEED)) $(if $(SCENARIO),--scenario $(SCENARIO)) \
	  $(if $(CATALOG),--catalog $(CATALOG)) $(OPTIONS)

.PHONY: bench-format
bench-format: install ## the format beside PyIceberg, fastavro, iceberg-rust; OPTIONS="--case encode --rounds 5"
	@$(RUN)python -m bench.format $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(QUICK),--quick) $(OPTIONS)

.PHONY: format
format: install ## format the code
	@$(RUN)ruff format .
	@$(RUN)ruff check --fix .

.PHONY: docs
docs: install ## write the files in docs that are made from code
	@$(RUN)python tools/make_docs.py

.PHONY: docs-site
docs-site: install-docs ## the documentation site, into build/site: pages, API, search; needs no network to read
	@$(VENV_DOCS)/bin/python -m tools.make_site

.PHONY: lock
lock: install ## resolve pyproject.toml into requirements.lock; OPTIONS=--upgrade for newer releases
	@OPTIONS='$(OPTIONS)' sh tools/lock.sh

.PHONY: clean
clean: ## remove what was installed and cached; not what the demo made
	rm -rf $(VENV) $(VENV40) $(VENV43) $(VENV_BENCH) $(VENV_DOCS) .cache .mypy_cache .ruff_cache .pytest_cache \
	  .import_linter_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
