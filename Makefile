# Two commands do everything, from a bare clone: `make demo` (the main job) and `make test`.
# Both make .venv and install the pinned versions of constraints.txt. PYTHON names the interpreter.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test slow check format clean docs release

demo: $(VENV)/core
	$(BIN)/isoglot demo --output build/demo
	@echo "next: $(BIN)/isoglot search build/demo/mined.tsv 'Good morning!' --model build/demo/model"

test: $(VENV)/dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" --numprocesses 2 --dist loadfile

slow: $(VENV)/dev $(VENV)/node
	$(BIN)/python -m pytest -m "slow or hypothesis" --hypothesis-profile full

check: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/docs/bin/mkdocs build --strict --quiet
	@echo "the site is build/site/index.html"

release: $(VENV)/dev
	$(BIN)/python scripts/release.py $(VERSION)

format: $(VENV)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf build $(VENV)

$(VENV)/core: pyproject.toml constraints.txt
	@echo "installing isoglot and what it needs into $(VENV) (once)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch
	$(PIP) --editable ".[train,evaluate]"
	@touch $@

$(VENV)/dev: $(VENV)/core
	@echo "installing what the tests need into $(VENV) (once)"
	$(PIP) --editable ".[dev,evaluate,models,interop,datasets,tensorboard,faiss,serve,wikipedia,plot,train,xlsx,documents]"
	@touch $@

# For the tests of the example in JavaScript, which are skipped without.
$(VENV)/node: examples/javascript/package.json
	@cd examples/javascript && ONNXRUNTIME_NODE_INSTALL=skip npm install --silent --no-audit --no-fund --fetch-retries 1 --fetch-timeout 20000 \
		|| echo "npm cannot install its packages here: the tests that need Node are skipped"
	@touch $@

# By itself, since the library must not depend on what builds its documentation.
$(VENV)/docs: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)/docs
	$(VENV)/docs/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[docs]"
	@touch $@
