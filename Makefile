# Two commands: `make demo` shows what the library does, `make test` holds all that must hold.
# Needs Python 3.11 or later and a package registry; everything goes into .venv.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test bench soak clean

demo: $(VENV)/.runs
	$(BIN)/aftereffect demo

test: $(VENV)/.tests
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest

bench: $(VENV)/.tests
	$(BIN)/python benchmarks/run.py

soak: $(VENV)/.tests
	HYPOTHESIS_PROFILE=soak $(BIN)/pytest tests

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache out src/*.egg-info

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# A stamp is older than what it was made from only when the packages have to change.
$(VENV)/.runs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e .
	touch $@

$(VENV)/.tests: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/.runs
