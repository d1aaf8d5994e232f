# bundlec: recipes in, GitOps bundles out. `make help` lists the targets.
#
# Everything runs from .venv, a virtual environment in this tree; its packages are pinned with hashes. A target that only
# compiles installs the four runtime packages; tests and linters bring theirs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TOOLS := .tools

# Custom resource definitions that tests validate emitted objects against, if a checkout of them lies beside this tree.
BUNDLEC_CRDS ?= $(abspath $(wildcard ../shared/crds))
export BUNDLEC_CRDS
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Console scripts hold the tree's path: a tree that was moved, or whose interpreter is gone, is set up anew.
ifneq ($(shell test -x $(BIN)/python && cat $(VENV)/.path 2>/dev/null),$(CURDIR))
STALE := stale
endif

.DEFAULT_GOAL := help
.PHONY: help setup dev bundle list regenerate check diff test e2e lint docs bench tools lock clean stale
# pip runs share one environment, so targets run one after the other even with -j.
.NOTPARALLEL:

help: ## this list
	@grep -E '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9]+):[^#]*## (.*)/  make \1\t\2/' | expand -t 20

setup: $(VENV)/.runtime ## create .venv with the runtime packages and the `bundlec` command

dev: $(VENV)/.dev ## add the packages that tests and linters need

bundle: $(VENV)/.runtime ## compile one bundle: RECIPE=name [DEPLOYERS="a b"] [PROFILE=key=value] [OUT=dir]
	@test -n '$(RECIPE)' || { echo 'usage: make bundle RECIPE=name [DEPLOYERS="argocd flux"] [PROFILE=key=value] [OUT=dir]   (make list prints the names)' >&2; exit 2; }
	@$(BIN)/bundlec build '$(RECIPE)' $(foreach d,$(DEPLOYERS),--deployer '$(d)') $(foreach p,$(PROFILE),--profile '$(p)') $(if $(OUT),--out '$(OUT)')

list: $(VENV)/.runtime ## recipes and bundles that can be compiled
	@$(BIN)/bundlec list

regenerate: $(VENV)/.runtime ## compile every bundle of bundlec.yaml into out/, write docs/catalog.md; ends the conflicts that a merge left there
	@$(BIN)/bundlec build --all
	@test ! -f docs/catalog.md || { $(BIN)/bundlec list --format md > docs/.catalog.md && mv docs/.catalog.md docs/catalog.md; }
	@test -z "$$(git ls-files --unmerged -- out 2>/dev/null)" || git add --all -- out

check: $(VENV)/.runtime ## fail when out/ or docs/catalog.md is not what the sources say
	@$(BIN)/bundlec build --all --check
	@test ! -f docs/catalog.md || $(BIN)/bundlec list --format md | cmp -s - docs/catalog.md || { echo 'docs/catalog.md is old: make regenerate' >&2; exit 4; }

diff: $(VENV)/.runtime ## what the work tree changes in the bundles [BASE=origin/main] [FORMAT=text|md|json]
	@$(BIN)/bundlec diff --all $(if $(BASE),--base '$(BASE)') $(if $(FORMAT),--format '$(FORMAT)')

test: $(VENV)/.dev tools ## all tests, in parallel [ARGS="-k name"]
	$(BIN)/python -m pytest -n auto $(ARGS)

# Scenarios share two cores with a whole control plane: one after the other, and in the order of the files. What cannot be
# built here is told, and what needs it skipped; BUNDLEC_E2E=required makes that an error for deploy.sh and helmfile.
e2e: $(VENV)/.dev tools ## every deployer against a real API server [ARGS="-k name"]; needs Go the first time, or KUBEBUILDER_ASSETS
	@$(if $(BUNDLEC_E2E_BUILT),:,$(BIN)/python -m tests.e2e.build >/dev/null || true)
	BUNDLEC_E2E=$(or $(BUNDLEC_E2E),1) $(BIN)/python -m pytest tests/e2e -p no:randomly -p no:xdist $(ARGS)

lint: $(VENV)/.dev ## ruff, mypy --strict, shellcheck of the emitted scripts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict compiler
	@find .ci $(wildcard out) -type f \( -perm -u+x -o -name '*.sh' \) -print0 | LC_ALL=C sort -z | xargs -0 $(BIN)/shellcheck -x

docs: $(VENV)/.dev ## write docs/errors.md (every diagnostic code with an example) and docs/catalog.md
	$(BIN)/python tests/tools/errordocs.py
	@$(BIN)/bundlec list --format md > docs/.catalog.md && mv docs/.catalog.md docs/catalog.md

bench: $(VENV)/.dev ## measured times and memory beside their budgets
	$(BIN)/python tests/bench/bench.py

tools: $(VENV)/.dev ## helm 3 and 4, kubectl, shellcheck into .tools/bin, for tests (HELMFILE=1 also builds helmfile, with Go)
	@$(BIN)/python tests/tools/fetch.py $(if $(HELMFILE),--build)

lock: $(VENV)/.dev ## resolve the pinned requirements*.txt anew
	$(BIN)/python tests/tools/lock.py

clean: ## remove what make created (not out/)
	rm -rf $(VENV) $(TOOLS) .e2e .bundlec .pytest_cache .mypy_cache .ruff_cache .hypothesis bundlec.egg-info build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.path: $(STALE)
	@command -v '$(PYTHON)' >/dev/null || { echo 'bundlec needs Python 3.11 or newer: no `$(PYTHON)` on PATH (make PYTHON=/path/to/python3.12 ...)' >&2; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "bundlec needs Python 3.11 or newer: $(PYTHON) is $$('$(PYTHON)' --version 2>&1) (make PYTHON=/path/to/python3.12 ...)" >&2; exit 1; }
	@'$(PYTHON)' -c 'import venv, ensurepip' 2>/dev/null || { echo 'the venv module of $(PYTHON) is missing (Debian, Ubuntu: apt-get install python3-venv)' >&2; exit 1; }
	@rm -rf $(VENV)
	@'$(PYTHON)' -m venv $(VENV)
	@printf '%s' '$(CURDIR)' > $@

$(VENV)/.runtime: requirements.txt pyproject.toml $(VENV)/.path
	@echo 'setting up .venv (runtime packages)' >&2
	@$(BIN)/python -m pip install -q --require-hashes -r requirements.txt
	@$(BIN)/python -m pip install -q --no-deps --no-build-isolation --config-settings editable_mode=compat -e .
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.runtime
	@echo 'setting up .venv (test and lint packages)' >&2
	@$(BIN)/python -m pip install -q --require-hashes -r requirements-dev.txt
	@touch $@
