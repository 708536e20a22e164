# Everything to use and work on a clone. It needs Python 3.11 or newer and make; the rest is installed here.

VENV := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help install demo dev test tasks check format bench lock clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install:  ## the environment, .venv, from the lock (EXTRAS=tasks adds what the tasks' scripts need)
	@sh tools/environment.sh $(EXTRAS)
	@sh tools/system.sh bubblewrap

demo: install  ## run a real task end to end: no key, no network
	@$(VENV)/mlab demo $(ARGS)

dev:  ## install, with the tools of the targets below
	@sh tools/environment.sh dev $(EXTRAS)

test:  ## run the tests (ARGS="tests/sandbox -k kill" selects some)
	@sh tools/environment.sh dev tasks $(EXTRAS)
	@sh tools/system.sh bubblewrap chromium slurm-wlm munge
	PYTHONDONTWRITEBYTECODE= $(VENV)/pytest --numprocesses auto --dist worksteal $(ARGS)

tasks:  ## have every task prove itself on its mini data (ARGS="--markdown docs/tasks.md" writes the catalogue's page)
	@sh tools/environment.sh dev tasks $(EXTRAS)
	@sh tools/system.sh bubblewrap
	PYTHONDONTWRITEBYTECODE= $(VENV)/mlab tasks check --all --variant mini $(ARGS)

check: dev  ## formatting, lint, types, and which package may import which
	$(VENV)/ruff format --check .
	$(VENV)/ruff check .
	$(VENV)/mypy
	$(VENV)/lint-imports --no-logo

format: dev  ## fix what ruff can fix
	$(VENV)/ruff format .
	$(VENV)/ruff check --fix .

bench: dev  ## run every benchmark that has a quick form
	@set -e; for benchmark in $$(grep -l '"--quick"' benchmarks/*.py); do echo "== $$benchmark"; $(VENV)/python $$benchmark --quick; done

lock: dev  ## update the locks from pyproject.toml (UPGRADE=1: everything to its newest version)
	@sh tools/lock.sh $(if $(UPGRADE),--upgrade)
	@sh tools/environment.sh dev

clean:  ## remove the environment and every cache
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
