# make demo       installs into .venv and runs the main command
# make test       the same with the development tools, then linters, types, layers and tests
# make stub       writes dynamics/_native.pyi anew
# make sanitize   the tests of what runs in C++, with the address and undefined-behaviour sanitizers
PYTHON ?= python3
CXX ?= g++
BIN = .venv/bin
INSTALL = $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable
SOURCES = pyproject.toml setup.py constraints.txt $(wildcard dynamics/native/*)
FOLDERS = cito dynamics problems solvers figures benchmarks tests setup.py
SANITIZED = build/sanitized

.PHONY: demo test stub sanitize
demo: .venv/demo.stamp
	$(BIN)/cito bench planar

test: .venv/test.stamp
	$(BIN)/ruff check $(FOLDERS)
	$(BIN)/ruff format --check $(FOLDERS)
	$(BIN)/python -m mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest

# What the native core offers, for type checkers: to be run after a change of a binding.
stub: .venv/test.stamp
	$(BIN)/python -m nanobind.stubgen --quiet -m cito.dynamics._native -o dynamics/_native.pyi
	sed -i 's/-> tuple: /-> tuple[Any, ...]: /; s/-> object: /-> Any: /; s/^from typing import /from typing import Any, /' dynamics/_native.pyi

# Python itself is not instrumented: hence the preloaded runtimes, and no search for leaks. CasADi
# loads IPOPT in a way that the sanitizer does not allow: no tests that call it.
sanitize: .venv/test.stamp
	CITO_SANITIZE=address,undefined CXX=$(CXX) $(BIN)/python setup.py --quiet \
	  build --build-base $(SANITIZED)-objects --build-lib $(SANITIZED)
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	  PYTHONMALLOC=malloc \
	  $(BIN)/pytest -o pythonpath="$(SANITIZED) ." -p no:cacheprovider tests/dynamics tests/solvers \
	  --ignore tests/solvers/test_complementarity.py --ignore tests/solvers/test_interrupts.py

.venv/demo.stamp: $(SOURCES) | .venv
	$(INSTALL) .
	touch $@

.venv/test.stamp: $(SOURCES) | .venv
	$(INSTALL) ".[dev]"
	touch $@ .venv/demo.stamp

.venv:
	$(PYTHON) -m venv .venv
