# make demo: the paper's comparison, with a report to open in a browser. make test: what CI runs. Both install what they need.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3

.PHONY: demo test install check format warm warm-policies warm-training prometheus pictures bench slow train experiments clean

demo: $(VENV)/.package
	@mkdir -p out
	@$(BIN)/adlro compare paper16 --policies adlro,drain-argmin,min-min,allox,pair-sjf,easy-backfill,static-affinity,fcfs,tiresias --seeds 50 --json out/paper16.json --report out

# pip, mypy and compiling use one core each: the kernels of policies are compiled while pip installs the developers' packages.
test:
	$(MAKE) --jobs=4 --output-sync=target warm-policies check warm-training prometheus
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

install: $(VENV)/.developer

check: $(VENV)/.developer
	$(BIN)/ruff format --check src tests bench examples experiments
	$(BIN)/ruff check src tests bench examples experiments
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.developer
	$(BIN)/ruff format src tests bench examples experiments
	$(BIN)/ruff check --fix src tests bench examples experiments

# Compile every kernel that tests use once, so that both pytest workers find them in the cache.
warm:
	$(MAKE) --jobs=2 warm-policies warm-training

warm-policies: $(VENV)/.package
	$(BIN)/python tests/tools/warm.py policies

warm-training: $(VENV)/.developer
	$(BIN)/python tests/tools/warm.py training

# Install the Prometheus server that the telemetry tests use.
prometheus:
	tests/tools/apt_install.sh Prometheus prometheus prometheus

# The pictures of README and docs, in a headless browser (Debian's chromium).
pictures: $(VENV)/.package
	tests/tools/apt_install.sh Chromium chromium chromium
	mkdir -p out
	$(BIN)/adlro cluster import examples/history/nodes.txt --out out/nodes.toml
	$(BIN)/adlro assess examples/history/jobs.sacct.txt --cluster out/nodes.toml --report out/assess
	$(BIN)/adlro compare paper16 --policies adlro,drain-argmin,min-min,pair-sjf,easy-backfill,static-affinity,fcfs --seeds 50 --report out
	tests/tools/screenshot.sh out/assess/report.html docs/assess.png 1300,1250
	tests/tools/screenshot.sh out/report.html docs/report.png 1300,1150

bench: $(VENV)/.rivals
	mkdir -p out
	$(BIN)/python -m bench --json out/bench.json

# Train a policy like the shipped one (about half an hour on two cores) and compare both.
train: $(VENV)/.developer
	mkdir -p out
	$(BIN)/adlro train paper16 --out out/again --seed 0
	$(BIN)/adlro compare paper16 --policies adlro,out/again.npz,min-min --seeds 500

slow: $(VENV)/.rivals warm
	$(BIN)/pytest -n 2 --dist worksteal -m slow

# Recompute and check every published table (hours); openb_placement, traces, estimators and calibration need ../shared.
experiments: $(VENV)/.rivals
	for name in openb_placement quotas paper_table1 lower_bound gavel16 adlro_quality paper_dqn preemptive lookahead ablations inputs traces estimators risk calibration operator; do $(BIN)/python experiments/$$name/run.py --check --readme || exit 1; done

clean:
	rm -rf $(VENV) out

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "adlro needs Python 3.11 or newer; say: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

# The demo needs the package only; the other targets need the developer tools as well.
$(VENV)/.package: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.developer: $(VENV)/.package
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

# Packages that bench and experiments compare with (pandas, torchhd, stable-baselines3, LightGBM); make test does not need them.
$(VENV)/.rivals: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[bench,dev,experiments,sb3]'
	touch $(VENV)/.package $(VENV)/.developer $@
