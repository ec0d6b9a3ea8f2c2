# playhead: every target in one line. `make help` lists them.
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

.venv/ready: requirements-dev.txt constraints.txt $(wildcard */pyproject.toml)
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -r requirements-dev.txt
	@touch $@

venv: .venv/ready ## make .venv from the pinned files

generate: .venv/ready ## write attribute and event names from the registry
	$(BIN)/python semconv/generate.py

lint: .venv/ready ## ruff, pyright (strict), names against the registry
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python semconv/generate.py --check
	$(BIN)/pyright

test: lint ## lint, then the test suite (under 12 minutes on 2 cores)
	$(BIN)/pytest -q -n 2 -m "not acceptance"

.PHONY: help venv generate lint test
