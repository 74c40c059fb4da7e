# writecliff. The two commands that matter: `make demo` and `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := $(VENV)/.native-built
QUICK := target/demo/.installed
# Two workers a core, because many tests wait for processes that they start.
WORKERS := --numprocesses $(shell expr 2 '*' `nproc`) --dist worksteal
TIMED = tools/timed $@
# Hundreds of Python processes start here; without compiled files each would compile its modules anew.
unexport PYTHONDONTWRITEBYTECODE
RUST := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock tools/guided crates/runner/simulator.profdata

.PHONY: help demo setup test test-long test-rust test-measures test-python test-speed test-drives \
    test-drives-quick test-drives-twice test-served fetch-bench drives-shell needs lint wheel lock clean build-rust-tests \
    compile-python-tests \
    site gallery quick-simulator

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 20

# The first demo builds a less optimised simulator, because it compiles faster, while pip installs the Python packages.
# `make setup` later replaces this simulator with the optimised build.
demo: $(if $(wildcard $(NATIVE)),setup,$(QUICK)) ## run the main job on the embedded simulated drive; ends by naming its report and saying the outcome
	@rm -rf demo
	@echo "simulating a drive of 120 GB that is written six times (half a minute)" >&2
	@PYTHONPATH=python $(BIN)/python -m writecliff demo --output demo

setup: $(NATIVE) ## make .venv, build the simulator, install the program

# Tests that measure no times run side by side, because each kind leaves a core idle at times.
test: needs test-measures ## run all tests but those on emulated drives
	@$(MAKE) --no-print-directory --jobs 4 --output-sync=target test-rust test-python test-speed $(BESIDE)

# A fixed seed, so that CI tests the same cases twice; plain `cargo test` draws new ones.
test-rust: ## Rust tests
	PROPTEST_RNG_SEED=20250101 MAKEFLAGS= $(TIMED) cargo test --locked --workspace --quiet

# Apart from test-rust and test-speed so that CI can build them while the Python packages are fetched. Setup,
# beside it, has the processors first: it ends with one long step of linking, which leaves one of them idle.
build-rust-tests:
	@$(TIMED) nice cargo test --locked --workspace --quiet --no-run
	@$(TIMED) nice tools/guided cargo build --release --locked --quiet --package writecliff-runner --package writecliff-python \
	    --example instructions

# Apart from test-python so that CI does it once, beside its builds, and not each worker and the guest anew.
compile-python-tests: setup
	@said=$$($(TIMED) $(BIN)/python -m pytest --quiet --collect-only tests) || { echo "$$said" | grep -v "^tests.*::"; exit 1; }

test-measures: setup ## Python tests that measure times, one after another (part of test)
	$(TIMED) $(BIN)/python -m pytest --quiet -m measures tests/device tests/unit/workload

# Apart from test: it takes minutes of real time, and a busy machine fails it.
test-served: ## served drives against simulated ones, in real time; needs a quiet machine
	cargo test --locked --quiet --package writecliff-serve --test integration -- --ignored --test-threads 1

test-python: setup ## all other Python tests: units, fio, browser
	$(TIMED) $(BIN)/python -m pytest --quiet -m "not measures and not long" --durations 25 --durations-min 10 $(WORKERS) tests/device tests/browser tests/unit

# `make test` runs one case of each of these tests.
test-long: setup ## the longest cases of the Python tests; run them before a release
	$(TIMED) $(BIN)/python -m pytest --quiet -m long $(WORKERS) tests/device tests/unit

test-speed: ## instruction counts of small fixed cases against those on record
	$(TIMED) tools/instruction-counts

test-drives: setup ## all tests on emulated drives in a virtual machine (takes long)
	$(BIN)/python -m tests.guest test

# Apart from test-drives so that CI can fetch the guest while it builds.
fetch-bench:
	@$(PYTHON) -m tests.guest --or-skip fetch >/dev/null

test-drives-quick: setup ## those of test-drives that do not take minutes each
	$(BIN)/python -m tests.guest --or-skip --quick test

# A guest whose processor is interpreted may lose a race on a busy machine: a test that fails twice fails. One
# processor costs a third less than the two of test-drives (tests/guest/machine.py).
test-drives-twice: export WRITECLIFF_GUEST_PROCESSORS ?= 1
test-drives-twice: setup ## test-drives-quick, with a second run of the failed tests (a step of CI)
	$(TIMED) $(BIN)/python -m tests.guest --or-skip --quick --twice test

drives-shell: setup ## a shell in that machine
	@$(BIN)/python -m tests.guest shell

needs: ## install what the tests need from Debian (as root), or say what is missing
	@tools/test-needs

lint: setup ## formatters, linters, types, the walls between rooms, licences, grammar
	cargo fmt --all --check
	$(TIMED) cargo clippy --profile test --locked --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(TIMED) $(BIN)/mypy
	$(TIMED) $(BIN)/lint-imports --no-cache
	$(BIN)/python tools/licences
	$(BIN)/python tools/prose check

wheel: setup ## build the wheel and the source archive (target/dist); needs no Rust where it is installed
	@tools/build-wheel

site: gallery ## build the documentation into site/, with the gallery of reports
	@rm -rf site
	@echo "building the pages (15 s)" >&2
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --builder html \
	    --doctree-dir .cache/doctrees docs site
	@echo "site/index.html"

# Minutes the first time; what has not changed is kept in .cache/gallery.
gallery: setup needs ## make the reports of the gallery that are out of date
	@$(BIN)/python tools/gallery

lock: $(VENV)/.installed ## write requirements.lock and requirements-release.lock anew
	@tools/lock $(BIN)

clean: ## remove everything that was built
	rm -rf $(VENV) target demo site .cache python/writecliff/_native*.so \
	    python/writecliff/capture/libwritecliff_preload.so

$(VENV)/.installed: requirements.lock tools/make-venv
	@$(TIMED) tools/make-venv $(PYTHON) $(VENV)
	@touch $@

$(QUICK): $(RUST)
	@tools/check-rust
	@echo "first build: Python packages and simulator side by side (a minute and a half on two idle cores)" >&2
	@$(MAKE) --no-print-directory --jobs 2 $(VENV)/.installed quick-simulator
	@install -s -m 755 target/demo/lib_native.so python/writecliff/_native.abi3.so
	@touch $@

quick-simulator:
	@PYO3_PYTHON=$(PYTHON) $(TIMED) cargo build --quiet --profile demo --locked --target-dir target --package writecliff-python

$(NATIVE): $(VENV)/.installed pyproject.toml $(RUST)
	@tools/check-rust
	@echo "building the simulator (a minute or two)" >&2
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(TIMED) tools/guided $(BIN)/python -m pip install --quiet \
	    --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@tools/guided cargo build --quiet --release --locked --target-dir target --package writecliff-preload
	@install -s -m 755 target/release/libwritecliff_preload.so python/writecliff/capture/
	@$(BIN)/python -m compileall -q python/writecliff
	@touch $@
