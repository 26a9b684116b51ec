# Targets: demo, test, lint, bench, docs, clean. Each makes what it needs in .venv first.

VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help
.PHONY: help demo test lint bench docs clean

help:
	@echo "make demo   find a face in a photograph, hear a word beside it: on the host, then as firmware on an emulated Cortex-M33"
	@echo "make test   all tests (ARGS='-k arena' passes arguments to pytest)"
	@echo "make lint   ruff, mypy, pyright"
	@echo "make bench  measure speed, instructions, flash and RAM"
	@echo "make docs   write the generated parts of docs/ anew"
	@echo "make clean  remove .venv and what was built"

# The newest Python from 3.11 on, asked for by its own name first; PYTHON=... overrides.
$(VENV)/bin/python:
	@python="$(PYTHON)"; \
	if [ -z "$$python" ]; then for p in python3.13 python3.12 python3.11 python3; do \
		if command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$p; break; fi; \
	done; fi; \
	if [ -z "$$python" ]; then echo "make: no Python 3.11 or newer found: install one, or say make PYTHON=/path/to/python" >&2; exit 2; fi; \
	if ! $$python -c 'import venv, ensurepip' 2>/dev/null; then \
		echo "make: $$python cannot make environments: apt-get install python3-venv (on Debian and Ubuntu)" >&2; exit 2; fi; \
	echo "$$python -m venv $(VENV)" >&2; $$python -m venv $(VENV)

PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check

$(VENV)/.base: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable .
	@touch $@

# Where there is no cross compiler, the one that pip brings.
$(VENV)/.toolchain: $(VENV)/.base
	@if command -v arm-none-eabi-gcc >/dev/null && command -v gcc >/dev/null; then :; else \
		echo "no arm-none-eabi-gcc: installing the toolchain extra (about 100 MB)" >&2; $(PIP) --editable '.[toolchain]'; fi
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(PIP) --editable '.[dev]'
	@touch $@

demo: $(VENV)/.toolchain
	@$(BIN)/python examples/face_detection/demo.py $(ARGS)
	@echo
	@$(BIN)/python examples/doorbell/demo.py

test: $(VENV)/.dev
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=15 $(ARGS)

lint: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(VENV)/.dev
	@$(BIN)/python -m bench $(ARGS)

docs: $(VENV)/.dev
	@$(BIN)/python tools/make_docs.py

clean:
	rm -rf $(VENV) build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis
