# SPDX-License-Identifier: Apache-2.0
# make demo: train, deploy and prove a small network on an emulated Cortex-M4. make test: everything that is checked.
# Both set up what they need: Debian packages (with sudo when not root) and a virtual environment in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BOARD ?= mps2_an386

.PHONY: setup demo test lint format clean docs

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml scripts/setup.sh
	PYTHON=$(PYTHON) scripts/setup.sh $(VENV)
	touch $@

demo: setup
	$(BIN)/python examples/digits/demo.py --board $(BOARD)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest -n auto --dist worksteal

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	clang-format -i firmware/*/*.c firmware/*/*.h

docs: setup
	$(BIN)/python scripts/operator_table.py

clean:
	rm -rf build .pytest_cache .mypy_cache .ruff_cache
