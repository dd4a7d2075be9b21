# `make` alone lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := demo,dev,docs,dask,spark,mpi,peers,remote,tensorboard,serve,sklearn,onnx
JOBS ?= 3
PYTEST := $(BIN)/python -m pytest -p no:schemathesis  # its plugin takes a second to import, and the tests use its command
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test check bench soak mutants docs docs-site clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

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

check: $(VENV)/.dev  ## lint, format, types, one-way imports, file list
	@echo "ruff check"; $(BIN)/ruff check .
	@echo "ruff format"; $(BIN)/ruff format --check .
	@echo "mypy"; $(BIN)/mypy
	@echo "imports and file list"; $(PYTEST) $(CHECKED)

# The serial tests also run when others have failed, so that one run shows every failure; each call can fail the target.
# `check` has run two of the files already, and reading only the files with serial tests saves importing all the others.
CHECKED := tests/test_imports.py tests/test_file_list.py
SERIAL = $(shell grep -rl --include='test_*.py' 'mark\.serial' tests)

test: check  ## check, then every test but the heavy ones, JOBS=3 at a time
	@echo "tests, $(JOBS) at a time"; \
	$(PYTEST) -m "not soak and not serial" --numprocesses $(JOBS) --dist worksteal \
	  $(addprefix --ignore=,$(CHECKED)); others=$$?; \
	echo "tests that need the machine for themselves"; \
	$(PYTEST) -m "serial and not soak" $(SERIAL); exit $$((others || $$?))

soak: $(VENV)/.dev  ## the same tests at heavy counts; may take hours
	@echo "heavy tests"; $(PYTEST) -m soak --timeout 14400 || test $$? -eq 5

mutants: $(VENV)/.dev  ## check that the tests notice each mistake listed in tests/mutants/
	@$(BIN)/python tools/mutants.py

bench: $(VENV)/.demo  ## measure scaling with 1 and 2 workers, and plans beside runs, into benchmarks/
	@mkdir -p benchmarks
	@$(BIN)/tenor bench scaling --workers 1,2 --repeats 3 --out benchmarks/scaling.json
	@$(BIN)/python tools/plan_scores.py --out benchmarks/plan-scores.json

docs: $(VENV)/.dev  ## rewrite the pages that are made from code and results
	@$(BIN)/python tools/options.py
	@$(BIN)/python tools/file_list.py
	@$(BIN)/python tools/command_reference.py
	@$(BIN)/python tools/api_reference.py
	@$(BIN)/python tools/benchmark_page.py

docs-site: $(VENV)/.dev  ## build the documentation as a site in site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html; with search: $(BIN)/python -m http.server --bind 127.0.0.1 --directory site"

clean:  ## remove the virtual environment and caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis build dist site
