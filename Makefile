# make demo: the paper's table from nothing. make test: what CI runs. Both set up all they need.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3

.PHONY: demo test install check format warm bench slow clean

demo: $(VENV)/.package
	@mkdir -p out
	@$(BIN)/adlro compare paper16 --policies fcfs,static-affinity,easy-backfill,min-min --seeds 50 --json out/paper16.json
	@$(BIN)/adlro simulate paper16 --policy min-min --gantt out/paper16-min-min.html > out/paper16-min-min.txt
	@$(BIN)/adlro simulate paper16 --policy fcfs --gantt out/paper16-fcfs.html > out/paper16-fcfs.txt
	@echo "two schedules of one seed, to open in a browser: out/paper16-min-min.html out/paper16-fcfs.html"

test: check warm
	$(BIN)/pytest -n 2 -m "not slow"

install: $(VENV)/.developer

check: $(VENV)/.developer
	$(BIN)/ruff format --check src tests examples
	$(BIN)/ruff check src tests examples
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.developer
	$(BIN)/ruff format src tests examples
	$(BIN)/ruff check --fix src tests examples

warm: $(VENV)/.developer
	$(BIN)/adlro compare paper16 --policies all --seeds 1 >/dev/null

bench: $(VENV)/.developer
	mkdir -p out
	$(BIN)/adlro bench --json out/bench.json

slow: $(VENV)/.developer
	$(BIN)/pytest -n 2 -m slow

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
