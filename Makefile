# Two commands: `make run` serves the dashboard, `make test` checks it. Both do their own set-up.
# Variables: PYTHON (the interpreter .venv is made with), PORT (for run), FMVIZ_CHROMIUM (for tests),
# PYTEST_ARGS (for tests: make test PYTEST_ARGS="-k prox").

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test test-all cluster docs notebooks setup setup-dev warmup lint format screenshots results lock clean

ifneq ($(origin PYTHON),undefined)
export PYTHON
endif
ifneq ($(origin FMVIZ_CHROMIUM),undefined)
export FMVIZ_CHROMIUM
endif
# A PORT that happens to be in the environment is not meant for us; one on the command line is.
PORT_FLAG := $(if $(filter command,$(origin PORT)),--port=$(PORT))

run: setup ## Set up what is missing and serve the dashboard on http://127.0.0.1:8501
	@sh tools/warmup.sh
	@sh tools/run.sh $(PORT_FLAG)

test: setup-dev ## Lint, type-check and test, the browser included: what every push has to pass
	@sh tools/test.sh fast $(PYTEST_ARGS)

test-all: setup-dev ## The same with all that is slow: before a release
	@sh tools/test.sh all $(PYTEST_ARGS)

setup:
	@sh tools/setup-venv.sh

setup-dev:
	@sh tools/setup-venv.sh dev

warmup: setup ## Compile the kernels now, even if the cache looks fresh
	@sh tools/warmup.sh --force

lint: setup-dev ## ruff check, ruff format --check, mypy, names, size
	@sh tools/lint.sh

format: setup-dev ## Let ruff format the code and apply its safe fixes
	@. tools/common.sh && .venv/bin/python -m ruff check --fix-only --quiet . && .venv/bin/python -m ruff format .

cluster: setup-dev ## Start a Dask scheduler and two workers on this machine, at tcp://127.0.0.1:8786, until Ctrl-C
	@sh tools/cluster.sh

docs: ## Build the user guide and the API reference into docs/_build/html
	@sh tools/setup-venv.sh docs
	@sh tools/docs.sh

notebooks: ## Execute the notebooks of docs/, for errors only
	@sh tools/setup-venv.sh docs
	@. tools/common.sh && .venv/bin/jupyter execute docs/*.ipynb

screenshots: setup-dev ## Photograph every page into screenshots/ (make screenshots DOCS=--docs: the pictures of docs/)
	@sh tools/warmup.sh
	@. tools/common.sh && FMVIZ_CHROMIUM="$$(sh tools/find-chromium.sh --install)" && export FMVIZ_CHROMIUM && \
		.venv/bin/python -m tools.screenshots $(DOCS)

results: setup ## Reproduce the papers' figures and the start page's fits, and keep them with the package (hours)
	@. tools/common.sh && .venv/bin/python -m tools.results

lock: ## Recompile the pinned requirements (make lock UPGRADE=--upgrade takes the newest)
	@sh tools/lock.sh $(UPGRADE)

clean: ## Remove .venv, every cache and every build product
	@rm -rf .venv docs/_build .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist screenshots ./*.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## Say what there is
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r target text; do \
		printf '%-20s %s\n' "$$target" "$$text"; done
