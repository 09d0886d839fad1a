# Every target sets up what it needs in .venv. `make demo` and `make test` are all one needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# inspect_ai asks OpenAI's models through a newer openai than litellm bears beside it.
INSPECT := $(VENV)-inspect

.PHONY: demo test browser heavy check bench format clean

demo: $(VENV)/.demo-ready
	$(BIN)/numbench demo

test: $(VENV)/.dev-ready browser
	$(BIN)/pytest -n 2

# report.html is tested in a real browser; where none is there and none can be installed, the
# tests that need it are skipped and say so.
browser:
	@command -v chromium || command -v chromium-browser || command -v google-chrome || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    apt-get install -qq -y --no-install-recommends chromium >/dev/null; } || true

heavy: $(VENV)/.dev-ready
	$(BIN)/pytest -n 2 -m heavy tests/heavy

check: $(VENV)/.dev-ready
	$(BIN)/ruff format --check bench experiments tests benchmarks
	$(BIN)/ruff check bench experiments tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev-ready $(INSPECT)/.ready
	$(BIN)/python benchmarks/generator.py | tee benchmarks/generator.md
	$(BIN)/python benchmarks/runner.py --inspect $(INSPECT)/bin/python | tee benchmarks/runner.md
	$(BIN)/python benchmarks/memory.py | tee benchmarks/memory.md
	$(BIN)/python benchmarks/scoring.py | tee benchmarks/scoring.md
	$(BIN)/python benchmarks/report_page.py | tee benchmarks/report_page.md
	$(BIN)/python benchmarks/encodings.py | tee benchmarks/encodings.md
	$(BIN)/python benchmarks/small_models.py | tee benchmarks/small_models.md

format: $(VENV)/.dev-ready
	$(BIN)/ruff format bench experiments tests benchmarks
	$(BIN)/ruff check --fix bench experiments tests benchmarks

clean:
	rm -rf $(VENV) $(INSPECT) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.demo-ready: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev-ready: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.demo-ready

$(INSPECT)/.ready: | $(BIN)/python
	$(BIN)/python -m venv $(INSPECT)
	$(INSPECT)/bin/pip install --quiet --disable-pip-version-check inspect-ai openai
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "numbench needs Python 3.11 or newer; name one: make PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv $(VENV)
