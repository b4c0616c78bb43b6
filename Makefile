# `make demo` sets up and runs the main job; `make test` sets up and passes the tests.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find core plugins exporters scenarios -name "*.py" -o -name "*.yaml") pyproject.toml

.PHONY: demo test check docs bench clean

demo: $(VENV)/installed
	$(BIN)/scenario run starter -o costs.xlsx

test: $(VENV)/tested
	$(BIN)/python -m pytest -n auto --dist loadfile

check: $(VENV)/tested
	$(BIN)/ruff check .
	$(BIN)/mypy --config-file pyproject.toml

docs: $(VENV)/tested
	$(BIN)/python -m scenario.cli.reference docs/

bench: $(VENV)/tested
	$(BIN)/pip install --quiet ".[bench]"
	$(BIN)/python benchmarks/evaluator.py

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(BIN)/python $(SOURCES)
	$(BIN)/pip install --quiet --disable-pip-version-check .
	touch $@

$(VENV)/tested: $(VENV)/installed
	$(BIN)/pip install --quiet --disable-pip-version-check ".[test]"
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info artefacts costs.xlsx
