# What a clone needs to be used and worked on: Python 3.11+ and make are there, the rest is made here.

VENV := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help install demo dev test tasks check format bench lock clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install:  ## the environment, .venv, from the lock (EXTRAS="openai anthropic tasks" adds model providers, and what tasks need)
	@sh tools/environment.sh $(EXTRAS)
	@sh tools/system.sh bubblewrap

demo: install  ## the whole loop on a real task: no key, no network
	@$(VENV)/mlab demo $(ARGS)

dev:  ## install, and the tools of the targets below
	@sh tools/environment.sh dev $(EXTRAS)

test:  ## the tests (ARGS="tests/sandbox -k kill" chooses some)
	@sh tools/environment.sh dev tasks $(EXTRAS)
	@sh tools/system.sh bubblewrap chromium
	$(VENV)/pytest --numprocesses auto --dist worksteal $(ARGS)

tasks:  ## every task proves itself on its small data (ARGS="--markdown docs/tasks.md" writes the catalogue's page)
	@sh tools/environment.sh dev tasks $(EXTRAS)
	@sh tools/system.sh bubblewrap
	$(VENV)/mlab tasks check --all --variant mini $(ARGS)

check: dev  ## formatting, lint, types, and which room may import which
	$(VENV)/ruff format --check .
	$(VENV)/ruff check .
	$(VENV)/mypy
	$(VENV)/lint-imports --no-logo

format: dev  ## mend what ruff can
	$(VENV)/ruff format .
	$(VENV)/ruff check --fix .

bench: dev  ## every benchmark that has a quick form, in it
	@set -e; for benchmark in $$(grep -l '"--quick"' benchmarks/*.py); do echo "== $$benchmark"; $(VENV)/python $$benchmark --quick; done

lock: dev  ## the locks anew from pyproject.toml, as little changed as it allows (UPGRADE=1: everything to its newest)
	@sh tools/lock.sh $(if $(UPGRADE),--upgrade)
	@sh tools/environment.sh dev

clean:  ## remove the environment and every cache
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
