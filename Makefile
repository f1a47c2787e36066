# `make demo` and `make test` set up .venv by themselves; PYTHON=python3.12 chooses another Python.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.installed

.PHONY: demo test lint bench clean

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[local,dev]"
	touch $(READY)

demo: $(READY)
	$(BIN)/rag ingest eval/data/demo.jsonl --store vectorstore/demo
	$(BIN)/rag ask "What mIoU does TopoPT reach on ScanNet?" --store vectorstore/demo
	@echo 'Now ask your own: $(BIN)/rag ask "..." --store vectorstore/demo'

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/pytest

bench: $(READY)
	$(BIN)/python -m eval.bench startup
	$(BIN)/python -m eval.bench memory
	$(BIN)/python -m eval.bench harness
	$(BIN)/python -m eval.bench retrieval
	$(BIN)/python -m eval.bench ingest
	$(BIN)/python -m eval.bench crashes
	$(BIN)/python -m eval.bench answers

clean:
	rm -rf .venv build *.egg-info
