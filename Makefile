# make demo: the paper's comparison from nothing, with a report to open in a browser. make test: what CI runs. Both set up all they need.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3

.PHONY: demo test install check format warm prometheus bench slow train experiments clean

demo: $(VENV)/.package
	@mkdir -p out
	@$(BIN)/adlro compare paper16 --policies adlro,drain-argmin,min-min,allox,pair-sjf,easy-backfill,static-affinity,fcfs,tiresias --seeds 50 --json out/paper16.json --report out

# mypy has one thread: the compiler works beside it.
test:
	$(MAKE) --jobs=3 --output-sync=target check warm prometheus
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow"

install: $(VENV)/.developer

check: $(VENV)/.developer
	$(BIN)/ruff format --check src tests bench examples experiments
	$(BIN)/ruff check src tests bench examples experiments
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.developer
	$(BIN)/ruff format src tests bench examples experiments
	$(BIN)/ruff check --fix src tests bench examples experiments

# Every kernel that tests use compiled once, so that the two workers of pytest find all in the cache.
warm: $(VENV)/.developer
	$(BIN)/python tests/tools/warm.py

# The real one that tests of telemetry talk to.
prometheus:
	tests/tools/install_prometheus.sh

bench: $(VENV)/.rivals
	mkdir -p out
	$(BIN)/python -m bench --json out/bench.json

# A policy like the shipped one from nothing, in half an hour or so on two cores, and both side by side.
train: $(VENV)/.developer
	mkdir -p out
	$(BIN)/adlro train paper16 --out out/again --seed 0
	$(BIN)/adlro compare paper16 --policies adlro,out/again.npz,min-min --seeds 500

slow: $(VENV)/.rivals warm
	$(BIN)/pytest -n 2 --dist worksteal -m slow

# Every published table anew, with its check (hours); openb_placement, traces and estimators need ../shared.
experiments: $(VENV)/.rivals
	for name in openb_placement quotas paper_table1 gavel16 adlro_quality paper_dqn preemptive lookahead ablations inputs traces estimators; do $(BIN)/python experiments/$$name/run.py --check --readme || exit 1; done

clean:
	rm -rf $(VENV) out

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "adlro needs Python 3.11 or newer; say: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

# The package alone is enough for the demo; the developer's tools come on top.
$(VENV)/.package: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.developer: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@ $(VENV)/.package

# Others' work to be measured beside (pandas, torchhd, stable-baselines3, scikit-learn), which make test does without.
$(VENV)/.rivals: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[bench,dev,experiments,sb3]'
	touch $@ $(VENV)/.developer $(VENV)/.package
