# SPDX-License-Identifier: Apache-2.0
# make demo: train, deploy and prove a small network on an emulated Cortex-M4. make test: everything that is checked.
# make check: what is quick of it, for while one works.
# make gallery: four small products, from the raw signal to the proved firmware. make boards: every board, every kind of
# project, built where the tools are. All set up what they need: Debian packages (with sudo when not root) and a virtual environment in .venv.

# Which Python the environment is made of; scripts/setup.sh chooses where nothing is said.
PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
BOARD ?= mps2_an386

.PHONY: setup demo gallery boards test check lint style format clean docs

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml scripts/setup.sh
	PYTHON='$(PYTHON)' scripts/setup.sh $(VENV)
	touch $@

demo: setup
	$(BIN)/python examples/digits/demo.py --board $(BOARD)

gallery: setup
	for name in keyword_spotting gesture anomaly image; do \
	  $(BIN)/python examples/$$name/demo.py --board $(BOARD) || exit 1; \
	done

boards: setup
	$(BIN)/python scripts/build_boards.py

lint: style
	$(BIN)/python scripts/check_types.py

style: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The tests start Python hundreds of times; who compiles all of tinyet again each time waits twice as long. What was
# installed is compiled when it is first imported.
test check demo gallery boards: export PYTHONDONTWRITEBYTECODE =

# A worker computes with one thread: there are as many workers as cores.
test check: export OMP_NUM_THREADS = 1
test check: export OPENBLAS_NUM_THREADS = 1

# mypy is one process, beside which a core would wait: types are checked while tests run, and fail at the end of them. Where
# nobody checks again, it keeps nothing, which is an eighth of its time.
test: style
	$(BIN)/python scripts/check_types.py $(if $(CI),--cache-dir=/dev/null) & types=$$!; scripts/in_memory.sh $(BIN)/pytest --workers auto; tests=$$?; wait $$types && exit $$tests

check: lint
	scripts/in_memory.sh $(BIN)/pytest --workers auto tests/unit tests/ops tests/passes tests/golden

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	clang-format -i firmware/*/*.c firmware/*/*.h qemu/*.c

docs: setup
	$(BIN)/python scripts/operator_table.py
	$(BIN)/python scripts/board_table.py
	$(BIN)/python scripts/figures.py

clean:
	rm -rf build .pytest_cache .mypy_cache .ruff_cache
