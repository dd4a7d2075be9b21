# `make` alone lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := demo,dev,dask,spark,mpi,remote,tensorboard
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test check bench soak docs clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

# Stamps: an installation is made again only when what it depends on has changed.
$(BIN)/python:
	@echo "making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing tenor[demo] with the pinned versions"
	@$(PIP) -e '.[demo]'
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing tenor with the extras its tests use, in the pinned versions"
	@$(PIP) -e '.[$(EXTRAS)]'
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo  ## 33,530 real reviews to a model and a report.html, in minutes
	@$(BIN)/tenor demo

check: $(VENV)/.dev  ## lint, format, types, one-way imports, README tree
	@echo "ruff check"; $(BIN)/ruff check .
	@echo "ruff format"; $(BIN)/ruff format --check .
	@echo "mypy"; $(BIN)/mypy
	@echo "imports and README tree"; $(BIN)/python -m pytest tests/test_imports.py tests/test_readme_tree.py

test: check  ## check, then every test but the heavy ones
	@echo "tests"; $(BIN)/python -m pytest -m "not soak"

soak: $(VENV)/.dev  ## the same tests at heavy counts; may take hours
	@echo "heavy tests"; $(BIN)/python -m pytest -m soak --timeout 14400 || test $$? -eq 5

bench: $(VENV)/.demo  ## measure scaling with 1 and 2 workers into benchmarks/
	@mkdir -p benchmarks
	@$(BIN)/tenor bench scaling --workers 1,2 --repeats 3 --out benchmarks/scaling.json

docs: $(VENV)/.dev  ## rewrite the README's tree and the command reference from the code
	@$(BIN)/python tools/readme_tree.py
	@$(BIN)/python tools/command_reference.py

clean:  ## remove the virtual environment and caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis build dist
