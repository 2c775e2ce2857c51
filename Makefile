# make demo   a working log on the local disk, from a bare Debian or Ubuntu machine
# make test   all tests, on a real Ceph cluster too
# Both install what is missing (apt-get, with sudo when not root), and are quick the second time.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:

# The system's Python, since Ceph's module for Python exists for that one only.
PYTHON := $(firstword $(wildcard /usr/bin/python3) python3)
BIN := $(CURDIR)/.venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
INSTALL := $(PIP) install --no-build-isolation --config-settings=build-dir=build/package
DONE := .venv/done
# Have Python keep what it compiles: pytest takes half a minute to compile the tests.
export PYTHONDONTWRITEBYTECODE :=
TEST_MINUTES := 45
# Each has clusters of its own. Tests wait half of the time: four keep two cores busy.
TEST_WORKERS := 4
# With the command that a target may put before it.
PYTEST = timeout --signal=INT --kill-after=60 $(TEST_MINUTES)m $(MEASURE) $(BIN)/pytest \
	--numprocesses=$(TEST_WORKERS) --dist=loadfile --no-loadscope-reorder -o faulthandler_timeout=300
FUZZ_RUNS := 10000000
# What programs below tests/ import: their helpers use pytest.
TESTING := $(DONE)/package $(DONE)/dev-tools

DEMO_PACKAGES := ca-certificates g++ liblmdb-dev liblz4-dev libzstd-dev python3-dev python3-venv
# The daemons, and what the object class is built with.
CEPH_PACKAGES := ceph-mgr ceph-mon ceph-osd librados-dev libradospp-dev python3-rados rados-objclass-dev \
	radosgw
# The browser that tests show the console in. Ubuntu has it as a snap only; its tests are left out there.
CHROMIUM := $(shell grep -qs '^ID=ubuntu$$' /etc/os-release || echo chromium)
REQUIRE_CHROMIUM := $(if $(CHROMIUM),ZLOG_REQUIRE_CHROMIUM=1)
# pgrep, with which tests look for processes that were left behind; what scrapes metrics; and cephadm's
# parser of specifications.
TEST_PACKAGES := procps prometheus python3-ceph-common $(CHROMIUM)
# Spark 4 needs Java 17 or later. It is not the default of all systems, and new ones lack it.
JAVA_17 := openjdk-17-jre-headless
# What pyproject.toml asks for, kept between builds, and a cmake newer than Ubuntu 22.04's.
BUILD_TOOLS := 'cmake>=3.24' 'cython>=3.1' ninja 'scikit-build-core>=1.0'

# Folders, and programs without a suffix, which ruff would not find in them.
PYTHON_CODE := bench ceph-dev cli docs/conf.py docs/generate.py examples pyspark_zlog seqr tests tools zlog \
	zlog_command ceph-dev/cluster packaging/sbom tools/check-links
CPP_FOLDERS := bench cls_zlog zlog seqr tests
# The package is installed as links to the sources: an edit of Python code needs no build, and a
# module that was added or removed needs a new list of them.
MODULES := build/modules
$(shell mkdir -p build; find zlog seqr cli pyspark_zlog zlog_command -name '*.py' | sort > $(MODULES).new; \
	cmp -s $(MODULES).new $(MODULES) || cp $(MODULES).new $(MODULES))
# The API for threads, which git ignores.
SYNC := build/sync
NATIVE := CMakeLists.txt tools/codes.py tools/messages_cython.py tools/stubs.py $(shell find cls_zlog zlog seqr bench \
	-name '*.cc' -o -name '*.h' -o -name '*.py[xd]' -o -name CMakeLists.txt)

.PHONY: help
help: ## say what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.PHONY: demo
demo: $(DONE)/package ## build, then keep a real file in a log on the local disk
	@PATH="$(BIN):$$PATH" VIRTUAL_ENV=.venv examples/demo.sh

ALL_TESTS = ZLOG_CLASS=$$(ceph-dev/cluster build-class build/class) && export ZLOG_CLASS && \
	ZLOG_REQUIRE_CEPH=1 $(REQUIRE_CHROMIUM) $(PYTEST)

.PHONY: test
test: lint-quick docs-check limits cls-tests $(TESTING) $(DONE)/java ## check the code, then run tests of every kind; without Ceph they fail
	$(ALL_TESTS) -m 'not long'

.PHONY: test-long
test-long: TEST_MINUTES := 90
test-long: lint docs-check limits cls-tests $(TESTING) $(DONE)/java $(DONE)/spin npm ## clang-tidy, and the tests that make test leaves out
	ZLOG_REQUIRE_NODE=1 && export ZLOG_REQUIRE_NODE && $(ALL_TESTS) -m long

.PHONY: npm
npm: $(DONE)/npm ## install the protocol's test suite and client, with which tests of zlog http run

# What a release of Ceph can change.
CEPH_TESTS := tests/ceph_dev tests/cli/test_doctor_ceph.py tests/conformance tests/native/test_ceph_store.py tests/system

.PHONY: test-ceph
test-ceph: ## as root: make demo and the tests of Ceph, in a bare system; SUITE=trixie, noble or forky
	packaging/test-ceph $(SUITE)

.PHONY: test-ceph-here
test-ceph-here: $(TESTING) $(DONE)/ceph
	$(ALL_TESTS) $(CEPH_TESTS)

.PHONY: test-local
test-local: limits cls-tests $(TESTING) $(DONE)/spin ## all tests that need neither Ceph nor Spark
	ZLOG_TEST_CEPH=never $(REQUIRE_CHROMIUM) $(PYTEST) --ignore=tests/spark

.PHONY: coverage
coverage: coverage-protocol coverage-python ## what tests without Ceph and Spark execute; fails if they miss a line of the protocol

# Counters of lines in the compiled code, in a build of its own: the programs of tests/cls, and a package.
COVERAGE := $(CURDIR)/build/coverage
# Several threads run the protocol at once, and count. The code that only marks the end of a
# variable's lifetime would count as lines that never run.
COUNTED := --coverage -fprofile-update=atomic -fstack-reuse=none -fno-sanitize-address-use-after-scope
PROTOCOL_TESTS := tests/cls tests/conformance tests/native/test_audit.py tests/client/test_columns.py \
	tests/client/test_compression.py tests/client/test_macs.py tests/client/test_compaction.py \
	tests/client/test_check.py tests/client/test_retention_age.py tests/client/test_tags.py tests/client/replicas \
	tests/sequencer/test_machine.py tests/sequencer/test_machine_model.py

.PHONY: coverage-protocol
coverage-protocol: $(TESTING)
	rm -rf $(COVERAGE)/package $(COVERAGE)/cls $(COVERAGE)/venv
	@# An environment that adds this build of zlog to the packages of the first one.
	$(PYTHON) -m venv --without-pip $(COVERAGE)/venv
	$(BIN)/python -c 'import site; print(*site.getsitepackages(), sep="\n")' > \
		$$($(COVERAGE)/venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/first.pth
	$(PIP) --python $(COVERAGE)/venv/bin/python install --no-build-isolation \
		--config-settings=build-dir=build/coverage/package \
		--config-settings=cmake.build-type=Debug --config-settings=cmake.define.CMAKE_CXX_FLAGS='$(COUNTED)' \
		--no-deps --ignore-installed --editable .
	CXXFLAGS='-O0 $(COUNTED)' ZLOG_CLS_TESTS=$(COVERAGE)/cls ZLOG_TEST_CEPH=never \
		$(PYTEST:$(BIN)/pytest=$(COVERAGE)/venv/bin/python -m pytest) -rfE $(PROTOCOL_TESTS)
	$(BIN)/gcovr

.PHONY: coverage-python
coverage-python: MEASURE = $(BIN)/coverage run
coverage-python: limits $(TESTING) $(DONE)/spin
	rm -rf $(COVERAGE)/python
	@# Of a process that is killed nothing is known, and that test kills by the clock.
	ZLOG_TEST_CEPH=never $(PYTEST) -rfE --ignore=tests/spark --ignore=tests/system/test_mirror_killed.py
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

.PHONY: fuzz
fuzz: $(TESTING) ## run each fuzzer for FUZZ_RUNS inputs; those in C++ under the sanitizers
	tools/apt-install clang
	$(BIN)/cmake -S tests/cls -B build/fuzz -DCMAKE_CXX_COMPILER=clang++
	$(BIN)/cmake --build build/fuzz --parallel 2 --target fuzz_methods fuzz_grants
	mkdir -p build/fuzz/corpus/methods build/fuzz/corpus/grants
	$(PYTHON) -m tests.fuzz.corpus build/fuzz/corpus/methods
	build/fuzz/fuzz_methods -runs=$(FUZZ_RUNS) -max_len=240 -rss_limit_mb=512 \
		-dict=build/fuzz/corpus/methods.dict build/fuzz/corpus/methods
	build/fuzz/fuzz_grants -runs=$(FUZZ_RUNS) -max_len=480 build/fuzz/corpus/grants
	$(BIN)/python -m tests.fuzz --inputs $(FUZZ_RUNS)

.PHONY: build
build: $(DONE)/package $(DONE)/ceph $(SYNC) ## build the package and the object class
	ceph-dev/cluster build-class build/class

# With Python 3.10 to 3.14, and Ceph 17.2, 16.2, 19.2, 18.2 and 20.2.
SUITES := jammy bookworm noble trixie forky

.PHONY: sdist
sdist: $(DONE)/build-tools
	rm -f dist/*.tar.gz
	$(BIN)/python -c 'from scikit_build_core.build import build_sdist; build_sdist("dist")'

.PHONY: wheels
wheels: sdist $(DONE)/ceph ## as root: source and wheels of Python 3.10 to 3.14 in dist/, tried on bare systems; SUITES=…
	rm -f dist/*.whl
	packaging/build wheel $(SUITES)

.PHONY: packages
packages: sdist ## as root: Debian packages of the class and the sequencer in dist/, tried on bare systems; SUITES=…
	rm -f dist/*.deb
	packaging/build packages $(SUITES)

.PHONY: release
release: ## as root, from a clean checkout of a tag: all that is published, in dist/, reproducibly; SUITES=…
	packaging/release $(SUITES)

.PHONY: bench
bench: limits $(DONE)/ceph ## measure zlog next to raw limits, into build/bench/figures.md, in under 10 minutes
	ZLOG_CLASS=$$(ceph-dev/cluster build-class build/class) && export ZLOG_CLASS && \
	$(BIN)/python -m bench.table --folder build/bench --json build/bench/figures.json \
		--page build/bench/figures.md

.PHONY: cls-tests
cls-tests: $(DONE)/package
	CXXFLAGS=-O0 $(BIN)/cmake -S tests/cls -B build/cls-tests
	$(BIN)/cmake --build build/cls-tests --parallel 2

.PHONY: limits
limits: $(DONE)/package
	$(BIN)/cmake --build build/package --target zlog_limits

# Servers that Debian lacks, or has too old: NATS where there is Go, Kafka out of Maven's repository.
PEERS := $(CURDIR)/build/peers
NATS := github.com/nats-io/nats-server/v2@v2.12.1

.PHONY: bench-peers
bench-peers: limits $(DONE)/ceph $(DONE)/peers ## measure zlog next to other systems, into build/bench/peers.md, in 15 minutes
	mkdir -p build/bench
	ZLOG_CLASS=$$(ceph-dev/cluster build-class build/class) && export ZLOG_CLASS && \
	$(BIN)/python -m bench.peers --folder build/bench --tools $(PEERS) > build/bench/peers.md
	$(BIN)/python -m bench.peers.recorders --folder build/bench >> build/bench/peers.md

.PHONY: model
model: $(DONE)/spin ## search the model of the protocol at length; VARIANT=… shows a broken one fail
	$(PYTHON) -m tests.model $(VARIANT)

# The model, searched; a million simulated operations; real processes, killed; and a real cluster under
# faults. `make chaos SEED=…` replays one simulated run and shows what happens in it.
CHAOS := model chaos-simulation chaos-kills chaos-faults
CHAOS_SEEDS := 1800
OBJECT_SEEDS := 200
KILLS := 200
MINUTES := 10

.PHONY: chaos
chaos: $(if $(SEED),chaos-simulation,$(CHAOS)) ## the model, simulated and real runs under faults, for some twenty minutes

.PHONY: chaos-simulation
chaos-simulation: $(TESTING)
	$(BIN)/python -m tests.sim $(if $(SEED),--seed $(SEED),--seeds $(CHAOS_SEEDS))
	$(if $(SEED),,$(BIN)/python -m tests.sim --kind objects --seeds $(OBJECT_SEEDS))

.PHONY: chaos-kills
chaos-kills: $(TESTING) ## KILLS=200 of processes that use an embedded store; SEED=…
	$(BIN)/python -m tests.faults --kills $(KILLS) $(if $(SEED),--seed $(SEED))

.PHONY: chaos-faults
chaos-faults: $(TESTING) $(DONE)/ceph ## MINUTES=10 of faults on a Ceph cluster of 3 OSDs; SEED=…
	ZLOG_CLASS=$$(ceph-dev/cluster build-class build/class) && export ZLOG_CLASS && \
	$(BIN)/python -m tests.faults --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

.PHONY: lint
lint: lint-quick ## what lint-quick does, and clang-tidy
	find $(CPP_FOLDERS) -name '*.cc' | xargs --max-procs=$$(nproc) --max-args=1 $(BIN)/clang-tidy --quiet

.PHONY: lint-quick
lint-quick: $(DONE)/dev-tools $(DONE)/spark $(DONE)/package $(DONE)/ceph $(SYNC) ## ruff, mypy, clang-format, and that what is generated is current
	$(BIN)/python -m tools.messages --check
	find $(CPP_FOLDERS) -name '*.cc' -o -name '*.h' | xargs $(BIN)/clang-format --dry-run --Werror
	$(BIN)/ruff check $(PYTHON_CODE)
	$(BIN)/ruff format --check $(PYTHON_CODE)
	$(BIN)/mypy --package zlog
	$(BIN)/mypy bench ceph-dev/ceph_dev tests/support

.PHONY: messages
messages: $(DONE)/dev-tools $(DONE)/package ## write what follows from the messages of the object class (after a change of them)
	$(BIN)/python -m tools.messages

.PHONY: docs-check
docs-check: ## look for dead links in the documentation
	$(PYTHON) tools/check-links *.md docs

.PHONY: docs
docs: docs-check $(DONE)/docs-tools ## the documentation as a site, in build/site; it needs no server and no other host
	rm -rf build/site
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --nitpicky --jobs=auto --conf-dir=docs \
		--doctree-dir=build/doctrees . build/site

.PHONY: clean
clean: ## remove all that was built; installed Debian packages stay
	rm -rf .venv build dist zlog/sync zlog/groups/sync zlog/objects/sync .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(SYNC): tools/sync_facade.py $(wildcard zlog/aio/*.py zlog/groups/aio/*.py zlog/objects/aio/*.py)
	$(PYTHON) tools/sync_facade.py
	@mkdir -p build && touch $@

# -- Steps; each leaves a file in .venv/done, and is not done again until what it depends on changes.

$(DONE)/venv:
	tools/apt-install $(DEMO_PACKAGES)
	$(PYTHON) -m venv .venv
	$(PIP) install --upgrade pip
	@mkdir -p $(DONE) && touch $@

$(DONE)/build-tools: $(DONE)/venv
	$(PIP) install $(BUILD_TOOLS)
	@touch $@

$(DONE)/dev-tools: pyproject.toml $(DONE)/venv
	tools/apt-install $(TEST_PACKAGES)
	$(PIP) install --group dev
	@touch $@

$(DONE)/docs-tools: pyproject.toml $(DONE)/venv
	$(PIP) install --group docs
	@touch $@

$(DONE)/release-tools: pyproject.toml $(DONE)/venv
	$(PIP) install --group release
	@touch $@

# PySpark is not in a system whose Python is older than it wants; its tests are left out there.
$(DONE)/spark: pyproject.toml $(DONE)/venv
	$(PIP) install --group spark
	@touch $@

$(DONE)/java: $(DONE)/venv
	tools/apt-install $$(apt-cache show $(JAVA_17) >/dev/null 2>&1 && echo $(JAVA_17) \
		|| echo default-jre-headless)
	@touch $@

# Makes a C program of the model of the protocol, which the compiler that is there already compiles.
$(DONE)/spin: $(DONE)/venv
	tools/apt-install spin
	@touch $@

$(DONE)/npm: tests/web/package.json $(DONE)/venv
	command -v npm >/dev/null || tools/apt-install nodejs npm
	mkdir -p build/npm && cp $< build/npm && npm install --no-audit --no-fund --prefix build/npm
	@touch $@

# A server that can't be had is left out of the tables, which say so.
$(DONE)/peers: pyproject.toml bench/peers/kafka.xml $(DONE)/venv $(DONE)/java
	tools/apt-install maven redis-server
	$(PIP) install --group peers
	-GOBIN=$(PEERS) go install $(NATS)
	-mvn --quiet --batch-mode --file bench/peers/kafka.xml dependency:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory=$(PEERS)/kafka
	@touch $@

$(DONE)/ceph: $(DONE)/venv
	tools/apt-install $(CEPH_PACKAGES)
	tools/link-rados $(PYTHON) $(BIN)/python
	@touch $@

$(DONE)/package: pyproject.toml $(MODULES) $(NATIVE) $(DONE)/build-tools
	$(INSTALL) --editable '.[console,http,metrics,objects,seqr,top]'
	@touch $@
