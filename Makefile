# `make demo` shows what the library does, `make test` holds all that must hold, `make docs` builds the documentation site.
# Needs Python 3.11 or later and a package registry; everything goes into .venv.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# How many processes share the tests: halves of the list in its order, so that what a folder's tests share is made once
# or twice, and whoever is done first takes over from the other.
WORKERS ?= 2
PORT ?= 8000
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo serve test test-gpu docs bench soak clean

demo: $(VENV)/.runs
	$(BIN)/aftereffect demo

# Another port: make serve PORT=8080
serve: $(VENV)/.service
	mkdir -p out
	$(BIN)/aftereffect serve --demo --store out/aftereffect.db --port $(PORT)

test: $(VENV)/.tests $(VENV)/.chromium
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

# On a machine with an NVIDIA GPU and its driver.
test-gpu: $(VENV)/.tests
	$(PIP) install -c constraints.txt -e '.[cuda]'
	AFTEREFFECT_GPU=1 $(BIN)/pytest tests/gpu

# Builds the site into out/docs; a warning fails it. All pages are read anew, since warnings are given only then; scripts
# of the gallery and notebooks that did not change are not run again.
docs: $(VENV)/.docs
	$(BIN)/python -m doctest docs/extensions/*.py
	$(BIN)/sphinx-build --fail-on-warning --keep-going --fresh-env --quiet --jobs auto --doctree-dir out/docs-doctrees docs out/docs
	@echo "Open out/docs/index.html."

bench: $(VENV)/.tests
	$(BIN)/python benchmarks/run.py

# Long runs: 1,000 kills of a server, 100 losses of its database, many more random examples. An hour or so on two cores.
soak: $(VENV)/.tests $(VENV)/.chromium
	AFTEREFFECT_SOAK=1 HYPOTHESIS_PROFILE=soak $(BIN)/pytest -n $(WORKERS) --dist worksteal -rP tests

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache out docs/generated src/*.egg-info

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# A stamp is older than what it was made from only when the packages have to change.
$(VENV)/.runs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e '.[studies]'
	touch $@

$(VENV)/.service: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e '.[service]'
	touch $@

$(VENV)/.tests: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/.runs $(VENV)/.service

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e '.[docs]'
	touch $@

# The dashboard is tested in a real browser: one that is there, or one that can be installed.
$(VENV)/.chromium: $(VENV)/.tests
	$(BIN)/python tests/service/install_chromium.py
	touch $@
