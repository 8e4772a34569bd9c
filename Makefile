# `make` without a target lists the targets. Each creates .venv if needed; this requires only python3 (3.11 or newer).

ARGS ?=
# scripts/launch.py reads ARGS from the environment; `value` prevents make from expanding it.
override ARGS := $(value ARGS)
export ARGS
PYTHON ?= python3
WHEELS ?=

# make would ignore a setting that is not in ARGS, and the target would do something else than the user asked for
VARIABLES := ARGS BIN PYTHON READY SHELL TORCH_INDEX WHEELS
UNKNOWN := $(sort $(filter-out $(VARIABLES),$(foreach each,$(.VARIABLES),$(if $(filter command,$(origin $(each))),$(each)))))
GIVEN := $(firstword $(UNKNOWN))
$(if $(GIVEN),$(error $(GIVEN) is no variable of this Makefile: write settings as ARGS="$(GIVEN)=$(value $(GIVEN))"; \
	make help lists the variables))

BIN := .venv/bin
READY := .venv/ready
# the index that .venv has torch from, which a later setup, after a change of the locked packages, takes again
INDEX_FILE := .venv/torch_index
INDEX_OF_VENV := $(shell cat $(INDEX_FILE) 2>/dev/null)
TORCH_INDEX ?= $(INDEX_OF_VENV)
OTHER_INDEX := $(if $(wildcard $(INDEX_FILE)),$(filter-out $(INDEX_OF_VENV),$(TORCH_INDEX)))
INDEX := $(if $(OTHER_INDEX),$(INDEX_OF_VENV),$(TORCH_INDEX))
# PYTHON if it is given, and is another version than that of an existing .venv
VENV_CONFIG := $(if $(filter-out file,$(origin PYTHON)),$(wildcard .venv/pyvenv.cfg))
OTHER_PYTHON = $(if $(VENV_CONFIG),$(filter-out $(shell sed -n 's/^version = //p' $(VENV_CONFIG)),$(lastword \
	$(shell "$(PYTHON)" --version 2>&1))))
KEPT = $(if $(OTHER_INDEX),torch,$(if $(OTHER_PYTHON),Python))
VENV_PYTHON := "$(BIN)/python"
LAUNCH := $(VENV_PYTHON) scripts/launch.py
PIP_INSTALL := $(VENV_PYTHON) -m pip install -qq --disable-pip-version-check \
	$(if $(WHEELS),--no-index --find-links "$(WHEELS)")
# torch has builds for each kind of GPU and for CPUs alone, each with its own hashes, so only its version is locked. An
# index of such builds is asked for torch and nothing else, so it cannot replace another package. The packages that all
# builds need are in requirements.lock.
# AMD's builds of torch bring a Triton of their own, in the same folder as the other.
ON_AMD := $(findstring rocm,$(INDEX))
LOCKED := $(if $(ON_AMD),.venv/requirements.txt,requirements.lock)
LOCK_FOR_AMD := $(if $(ON_AMD),awk '/^[a-z]/ { kept = !/^triton==/ } kept' requirements.lock > $(LOCKED))
TORCH_INSTALL := $(PIP_INSTALL) $(if $(INDEX),--index-url "$(INDEX)") --constraint constraints.lock torch

LAUNCHED := demo data train average eval translate synthesize serve score export import report describe doctor \
	table3 bench test

.DEFAULT_GOAL := help
.PHONY: help setup wheels lock all $(LAUNCHED) test-all lint format clean

help: ## List the targets
	@echo 'make TARGET [ARGS="KEY=VALUE ... GROUP=NAME ..."]'
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo 'Without ARGS, the targets use WMT14 English-German and the paper'"'"'s base model. Installation:'
	@echo '  PYTHON=python3.12  another Python       WHEELS=.wheels  offline, from the files of `make wheels`'
	@echo '  TORCH_INDEX=URL    the package index to take torch from, such as that of torch'"'"'s CPU builds'

setup: $(READY) ## Make .venv with the package and its locked dependencies
	@echo 'setup: .venv is ready$(if $(KEPT), and keeps its $(KEPT): for another one run `make clean` first)'

$(READY): requirements.lock constraints.lock pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "setup: nmt needs Python 3.11 or newer, \
	this is " + sys.version.split()[0] + "; name another one: make setup PYTHON=python3.12")'
	@echo 'setup: creating .venv with $(shell "$(PYTHON)" --version 2>&1)' >&2
	@"$(PYTHON)" -m venv .venv
	@echo 'setup: installing the packages of requirements.lock$(if $(WHEELS), from $(WHEELS)); torch may take minutes' >&2
	@$(LOCK_FOR_AMD)
	@$(PIP_INSTALL) $(if $(WHEELS),-r "$(WHEELS)/requirements.txt",--require-hashes -r $(LOCKED))
	@$(TORCH_INSTALL)
	@echo 'setup: installing nmt itself, editable' >&2
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@printf '%s\n' '$(INDEX)' > $(INDEX_FILE)
	@touch $@

wheels: $(READY) ## Download all dependencies to .wheels, for `make setup WHEELS=.wheels` offline
	@$(LOCK_FOR_AMD)
	@$(VENV_PYTHON) -m pip wheel -qq --disable-pip-version-check --wheel-dir .wheels --require-hashes -r $(LOCKED)
	@$(VENV_PYTHON) -m pip download -qq --disable-pip-version-check --dest .wheels \
		$(if $(INDEX),--index-url "$(INDEX)") --constraint constraints.lock torch
# a wheel that was built here has another hash than the sources, whose hash was checked
	@sed -e '/^ *--hash/d' -e 's/ *\\$$//' $(LOCKED) > .wheels/requirements.txt

lock: ## Update the locked dependencies to the newest releases that pyproject.toml allows
	@PYTHON="$(PYTHON)" scripts/lock

# one after the other, even with `make -j`
.NOTPARALLEL:
all: data train average eval report ## Run these five: from text to BLEU and a report

# All targets that accept ARGS share this recipe.
$(LAUNCHED): $(READY)
	@$(LAUNCH) $@

demo: ## Run the whole chain on the embedded corpus, on a CPU, offline, in minutes
data: ## Fetch, filter and tokenise a corpus
train: ## Train, or resume training, on all GPUs or the CPU
average: ## Average checkpoints, as the development set chooses or as in the paper
eval: ## Translate and score the test set, on all GPUs or the CPU
translate: ## Translate standard input, or a file: ARGS="input=FILE"
synthesize: ## Translate a file of any size into a corpus to train on, also by a teacher of others: ARGS="input=FILE"
# the first start installs the packages of the server
serve: export NMT_INSTALL = $(PIP_INSTALL) --constraint constraints.lock
serve: ## Serve models over HTTP: a page, and APIs for programs: ARGS="experiment=multi30k"
score: ## Score given translations: lines of source, tab, translation
# installs a package that only some settings need, such as that of the export's target
data export synthesize: export NMT_INSTALL = $(PIP_INSTALL) --constraint constraints.lock
export: ## Export a model for CTranslate2, Argos, Hugging Face, ONNX or a web page, and verify it
import: ## Make a run of a Hugging Face Marian model (opus-mt): ARGS="input=FOLDER name=NAME"
report: ## Write an HTML page about a run, or how several differ: ARGS="compare=[a,b]"
describe: ## Estimate the size, memory and time of a run
doctor: ## Say what this machine has, and which optional packages are missing
table3: ## Train and score the rows of the paper's Table 3; smaller: ARGS="table3.scale=small"
bench: ## Measure the speed of this machine; compared with other toolkits: ARGS="--help"
test: ## Run the quick tests, like CI
test-all: $(READY) ## Run all tests, slow ones too, and use the wheel outside the clone
	@$(LAUNCH) $@
	@.ci/wheel

lint: $(READY) ## Check style and types
	@$(VENV_PYTHON) -m ruff check
	@$(VENV_PYTHON) -m ruff format --check
	@$(VENV_PYTHON) -m mypy

format: $(READY) ## Format the code
	@$(VENV_PYTHON) -m ruff check --quiet --fix
	@$(VENV_PYTHON) -m ruff format --quiet

clean: ## Remove .venv and caches, but keep data/ and outputs/
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
