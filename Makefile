# `make` alone lists the targets. Each brings .venv up first; all they ask for is python3 (3.11 or newer) and make.

ARGS ?=
# ARGS may be written over several lines
override ARGS := $(strip $(ARGS))
PYTHON ?= python3
WHEELS ?=
TORCH_INDEX ?=

BIN := .venv/bin
READY := .venv/ready
NMT := $(BIN)/python -m nmt
PIP_INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check \
	$(if $(WHEELS),--no-index --find-links $(WHEELS)) $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
# ARGS may hold brackets, which are no patterns of file names
STAGE := @set -f;

.DEFAULT_GOAL := help
.PHONY: help setup wheels lock demo all data train batch average eval translate report compare attention score export table3 describe bench test test-all lint format clean

help: ## List the targets
	@echo 'make TARGET [ARGS="KEY=VALUE ... GROUP=NAME ..."]'
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo 'Without ARGS the stages work on WMT14 English-German, the paper'"'"'s base model. Installing:'
	@echo '  PYTHON=python3.12  another Python       WHEELS=.wheels  without network, from what `make wheels` fetched'
	@echo '  TORCH_INDEX=URL    also look there for packages, such as the CPU builds of torch'

setup: $(READY) ## Make .venv with the package and its locked dependencies
	@echo 'setup: .venv is ready'

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "setup: nmt needs Python 3.11 or newer, \
	this is " + sys.version.split()[0] + "; name another one: make setup PYTHON=python3.12")'
	@echo 'setup: making .venv with $(shell $(PYTHON) --version 2>&1)' >&2
	@$(PYTHON) -m venv .venv
	@echo 'setup: installing what requirements.lock lists$(if $(WHEELS), from $(WHEELS)); torch alone may take minutes' >&2
	@$(PIP_INSTALL) -r requirements.lock
	@echo 'setup: installing nmt itself, editable' >&2
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

wheels: $(READY) ## Fetch all dependencies into .wheels, for `make setup WHEELS=.wheels` without network
	@$(BIN)/python -m pip wheel -qq --disable-pip-version-check --wheel-dir .wheels -r requirements.lock

lock: ## Write requirements.lock anew, with the newest releases that pyproject.toml allows
	@PYTHON=$(PYTHON) scripts/lock

demo: $(READY) ## The whole chain on the embedded corpus, on a CPU, without network, in minutes
	$(STAGE) $(NMT) demo $(ARGS)

# one after the other, whatever `make -j` says
.NOTPARALLEL:
all: data train average eval report ## Text in, BLEU out: these five, one after the other

data: $(READY) ## Fetch, filter and tokenise a corpus
	$(STAGE) $(NMT) data $(ARGS)

train: $(READY) ## Train, or go on training, on all GPUs or the CPU
	$(STAGE) PYTHON=$(BIN)/python scripts/launch train $(ARGS)

batch: $(READY) ## Print the sentences that a step trained on: ARGS="step=1234"
	$(STAGE) $(NMT) batch $(ARGS)

average: $(READY) ## Average the last checkpoints
	$(STAGE) $(NMT) average $(ARGS)

eval: $(READY) ## Translate and score the test set, on all GPUs or the CPU
	$(STAGE) PYTHON=$(BIN)/python scripts/launch eval $(ARGS)

translate: $(READY) ## Translate standard input, or input=FILE
	$(STAGE) $(NMT) translate $(ARGS)

score: $(READY) ## Say how probable given translations are: source, tab, translation
	$(STAGE) $(NMT) score $(ARGS)

export: $(READY) ## Make a trained model into what CTranslate2 or Hugging Face load, and verify it
	$(STAGE) NMT_INSTALL='$(PIP_INSTALL) --constraint requirements.lock' $(NMT) export $(ARGS)

report: $(READY) ## Write a page on a run, or with compare=[a,b] on several
	$(STAGE) $(NMT) report $(ARGS)

compare: $(READY) ## Print how runs differ: compare=[a,b]
	$(STAGE) $(NMT) compare $(ARGS)

attention: $(READY) ## Draw where a model looks, as a PNG
	$(STAGE) $(NMT) attention $(ARGS)

describe: $(READY) ## Say what a run will cost, before it runs
	$(STAGE) $(NMT) describe $(ARGS)

table3: $(READY) ## Train and score the rows of the paper's Table 3; scale=small does so on the demo corpus
	$(STAGE) $(NMT) table3 $(ARGS)

bench: $(READY) ## Measure speed beside peers: ARGS="setup", "train", "decode --checkpoint=...", or "--help"
	$(STAGE) $(BIN)/python scripts/bench $(or $(ARGS),train)

test: $(READY) ## The quick tests, as CI runs them
	@$(BIN)/python -m pytest $(ARGS)

test-all: $(READY) ## All tests: the slow ones too, and those that need a GPU where there is one
	@$(BIN)/python -m pytest -m '' $(ARGS)

lint: $(READY) ## Check style and types
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

format: $(READY) ## Put the code into the one style
	@$(BIN)/ruff check --quiet --fix
	@$(BIN)/ruff format --quiet

clean: ## Remove .venv and caches; data/ and outputs/ stay
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
