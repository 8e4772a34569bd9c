# `make` alone lists the targets. Each brings .venv up first; all they ask for is python3 (3.11 or newer) and make.

ARGS ?=
# scripts/launch.py reads ARGS from the environment. `value` keeps make from expanding it, there and everywhere else.
override ARGS := $(value ARGS)
export ARGS
PYTHON ?= python3
WHEELS ?=
TORCH_INDEX ?=

BIN := .venv/bin
READY := .venv/ready
VENV_PYTHON := "$(BIN)/python"
LAUNCH := $(VENV_PYTHON) scripts/launch.py
PIP_INSTALL := $(VENV_PYTHON) -m pip install -qq --disable-pip-version-check \
	$(if $(WHEELS),--no-index --find-links "$(WHEELS)") $(if $(TORCH_INDEX),--extra-index-url "$(TORCH_INDEX)")

LAUNCHED := demo data train batch average eval translate score export report compare attention describe table3 \
	bench test test-all

.DEFAULT_GOAL := help
.PHONY: help setup wheels lock all $(LAUNCHED) lint format clean

help: ## List the targets
	@echo 'make TARGET [ARGS="KEY=VALUE ... GROUP=NAME ..."]'
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo 'Without ARGS the stages work on WMT14 English-German, the paper'"'"'s base model. Installing:'
	@echo '  PYTHON=python3.12  another Python       WHEELS=.wheels  without network, from what `make wheels` fetched'
	@echo '  TORCH_INDEX=URL    also look there for packages, such as the CPU builds of torch'

setup: $(READY) ## Make .venv with the package and its locked dependencies
	@echo 'setup: .venv is ready'

$(READY): requirements.lock pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "setup: nmt needs Python 3.11 or newer, \
	this is " + sys.version.split()[0] + "; name another one: make setup PYTHON=python3.12")'
	@echo 'setup: making .venv with $(shell "$(PYTHON)" --version 2>&1)' >&2
	@"$(PYTHON)" -m venv .venv
	@echo 'setup: installing what requirements.lock lists$(if $(WHEELS), from $(WHEELS)); torch alone may take minutes' >&2
	@$(PIP_INSTALL) -r requirements.lock
	@echo 'setup: installing nmt itself, editable' >&2
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

wheels: $(READY) ## Fetch all dependencies into .wheels, for `make setup WHEELS=.wheels` without network
	@$(VENV_PYTHON) -m pip wheel -qq --disable-pip-version-check --wheel-dir .wheels -r requirements.lock

lock: ## Write requirements.lock anew, with the newest releases that pyproject.toml allows
	@PYTHON="$(PYTHON)" scripts/lock

# one after the other, whatever `make -j` says
.NOTPARALLEL:
all: data train average eval report ## Text in, BLEU out: these five, one after the other

# These take ARGS, and all have this one recipe.
$(LAUNCHED): $(READY)
	@$(LAUNCH) $@

demo: ## The whole chain on the embedded corpus, on a CPU, without network, in minutes
data: ## Fetch, filter and tokenise a corpus
train: ## Train, or go on training, on all GPUs or the CPU
batch: ## Print the sentences that a step trained on: ARGS="batch.step=1234"
average: ## Average checkpoints: those that the development loss chooses, or the paper's
eval: ## Translate and score the test set, on all GPUs or the CPU
translate: ## Translate standard input, or input=FILE
score: ## Say how probable given translations are: source, tab, translation
# the export brings in what its target needs
export: export NMT_INSTALL = $(PIP_INSTALL) --constraint requirements.lock
export: ## Make a trained model into what CTranslate2 or Hugging Face load, and verify it
report: ## Write a page on a run, or with compare=[a,b] on several
compare: ## Print how runs differ: compare=[a,b]
attention: ## Draw where a model looks, as a PNG
describe: ## Say what a run will cost, before it runs
table3: ## Train and score the rows of the paper's Table 3, or with table3.scale=small on the demo corpus
bench: ## Measure speed beside peers: ARGS="setup", "train", "decode --checkpoint=...", or "--help"
test: ## The quick tests, as CI runs them
test-all: ## All tests: the slow ones too, and those that need a GPU where there is one

lint: $(READY) ## Check style and types
	@$(VENV_PYTHON) -m ruff check
	@$(VENV_PYTHON) -m ruff format --check
	@$(VENV_PYTHON) -m mypy

format: $(READY) ## Put the code into the one style
	@$(VENV_PYTHON) -m ruff check --quiet --fix
	@$(VENV_PYTHON) -m ruff format --quiet

clean: ## Remove .venv and caches; data/ and outputs/ stay
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
