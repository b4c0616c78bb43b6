# `make demo` sets up and runs the main job; `make test` sets up and passes the tests.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find core plugins exporters scenarios -name '*.py' -o -name '*.yaml') pyproject.toml

.PHONY: demo test quick test-all fuzz check docs bench clean accuracy

demo: $(VENV)/installed
	$(BIN)/scenario run starter -o costs.xlsx

# Everything but what is marked slow.
test: $(VENV)/tested
	$(BIN)/python -m pytest -n auto --dist loadfile

# What a person wants after each edit: no workbooks, no cold processes.
quick: $(VENV)/tested
	$(BIN)/python -m pytest -n auto --dist loadfile -x --ignore tests/workbooks --ignore tests/whole --ignore tests/testing -m "not slow and not process"

# What takes long: marked slow, run besides `make test`. ARGS: further arguments of pytest.
test-all: $(VENV)/tested
	$(BIN)/pip install --quiet --disable-pip-version-check ".[test,browser]"
	$(BIN)/python -m pytest -n auto --dist loadfile -m slow $(ARGS)

# Hostile inputs for hours: CASES of each kind, new ones each time; finds go to artefacts/fuzz.
fuzz: $(VENV)/tested
	SCENARIO_FUZZ=$(or $(CASES),20000) SCENARIO_FUZZ_FOUND=artefacts/fuzz SCENARIO_FUZZ_COUNTS=artefacts/fuzz-counts.jsonl \
	$(BIN)/python -m pytest tests/fuzz -m slow

# Style, types, complexity: a ratchet on the way to none above 20 and a mean of 4.
check: $(VENV)/tested
	$(BIN)/ruff check .
	$(BIN)/mypy --config-file pyproject.toml
	$(BIN)/xenon --max-absolute E --max-average-num 5.2 core plugins exporters

docs: $(VENV)/tested
	$(BIN)/python -m scenario.cli.reference docs/

DATA ?= data
accuracy: $(VENV)/tested  # DATA: the folder with silicon/ and specdec/
	$(BIN)/pip install --quiet --disable-pip-version-check ".[calibrate]"
	$(BIN)/python benchmarks/accuracy.py $(DATA) --hardware scenarios/hardware.yaml

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
