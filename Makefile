# Every target sets up what it needs in .venv: `make demo` and `make test` need no other step.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# One line per package, without the addresses and progress bars.
PIP_PROGRESS := --progress-bar off | sed -n -u -E 's/^(Collecting|Installing collected) ?([^ ]*).*/  \1 \2/p'

.PHONY: demo test slow peers heavy live check bench docs facts model-map format clean

demo: $(VENV)/.demo-ready
	$(BIN)/numbench demo
	@echo "next: source $(BIN)/activate"

# Tests start hundreds of interpreters, each of which would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

# -rs: say why tests are skipped, such as those that need a browser, and what they need.
test: $(VENV)/.dev-ready
	$(BIN)/pytest -n auto --maxprocesses 8 --dist worksteal -rs

slow: $(VENV)/.dev-ready
	$(BIN)/pytest -n 3 --dist worksteal -rs -m 'slow and not peers'

# Real servers with a real small model, set up outside the repository. SERVERS=all: vLLM (4 GB) and
# others too, minutes each. RECORD=1: write the results to the table of docs/running.md.
peers: $(VENV)/.dev-ready
	$(BIN)/python -m tests.peers.setup $(SERVERS)
	NUMBENCH_PEERS_RECORD=$(RECORD) $(BIN)/pytest -rs -m 'peers$(if $(SERVERS),, and not slow)' tests/peers

heavy: $(VENV)/.dev-ready
	$(BIN)/pytest -n 2 -m heavy

# Three questions to each provider whose key is set, for real money: well below a cent each.
live: $(VENV)/.dev-ready
	$(BIN)/pytest -m live -rs tests/live

check: $(VENV)/.dev-ready
	$(BIN)/ruff format --check bench studies tests benchmarks examples docs
	$(BIN)/ruff check bench studies tests benchmarks examples docs
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev-ready
	$(BIN)/python benchmarks/generator.py | tee benchmarks/generator.md
	$(BIN)/python benchmarks/runner.py | tee benchmarks/runner.md
	$(BIN)/python benchmarks/memory.py | tee benchmarks/memory.md
	$(BIN)/python benchmarks/scoring.py | tee benchmarks/scoring.md
	$(BIN)/python benchmarks/horizon.py | tee benchmarks/horizon.md
	$(BIN)/python benchmarks/scaled_tasks.py | tee benchmarks/scaled_tasks.md
	$(BIN)/python benchmarks/horizon_coverage.py --workers 2 | tee benchmarks/horizon_coverage.md
	$(BIN)/python benchmarks/intervals.py | tee benchmarks/intervals.md
	$(BIN)/python benchmarks/gate.py | tee benchmarks/gate.md
	$(BIN)/python benchmarks/small_models.py | tee benchmarks/small_models.md

docs: $(VENV)/.docs-ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

# What differs between the facts about models and the newest litellm and SDKs: benchmarks/facts.md.
facts: $(VENV)/.dev-ready
	rm -rf build/facts
	$(BIN)/pip download --quiet --disable-pip-version-check --no-deps --dest build/facts \
	  litellm openai anthropic google-genai mistralai xai-sdk groq together openrouter
	$(BIN)/python benchmarks/facts.py build/facts

# Prices, limits and capabilities of models, from the newest release of litellm.
model-map: $(VENV)/.dev-ready
	rm -rf build/litellm
	$(BIN)/pip download --quiet --disable-pip-version-check --no-deps --dest build/litellm litellm
	$(BIN)/python benchmarks/model_map.py build/litellm/*.whl

format: $(VENV)/.dev-ready
	$(BIN)/ruff format bench studies tests benchmarks examples docs
	$(BIN)/ruff check --fix bench studies tests benchmarks examples docs

clean:
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.demo-ready: pyproject.toml | $(BIN)/python
	@echo "Installing numbench and its dependencies into $(VENV) (about 600 MB, a few minutes):"
	$(BIN)/pip install --disable-pip-version-check -e . $(PIP_PROGRESS)
	@touch $@

$(VENV)/.dev-ready: pyproject.toml | $(BIN)/python
	@echo "Installing the development tools into $(VENV) (several GB with PyTorch):"
	$(BIN)/pip install --disable-pip-version-check -e '.[dev]' $(PIP_PROGRESS)
	@touch $@ $(VENV)/.demo-ready

$(VENV)/.docs-ready: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check $$($(BIN)/python -c "import tomllib; \
	  print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['docs'])")
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "numbench needs Python 3.11 or newer; name one: make PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv $(VENV)
