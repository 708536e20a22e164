#!/bin/sh
# Write the locks from pyproject.toml: lock.sh [--upgrade]
#
# Three locks for every supported Python and system, with hashes and without the address of an index:
#   requirements.lock        what the package and its build need
#   requirements-dev.lock    what the tools and tests need besides: the dependency group dev, and the extra langchain, which tests try
#   requirements-tasks.lock  what the extra tasks needs besides, but for torch and accelerate, whose right build depends on the machine
set -eu
cd "$(dirname "$0")/.."

compile() {
    .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
        --custom-compile-command "make lock" "$@" >/dev/null
}

# The packages of requirements.lock, which the other locks constrain and leave out.
besides() {
    echo "--constraints requirements.lock"
    sed -n 's/^\([a-z0-9._-]*\)==.*/--no-emit-package \1/p' requirements.lock | sort -u
}

compile "$@" pyproject.toml --group build --output-file requirements.lock
compile "$@" pyproject.toml --group dev --extra langchain $(besides) --output-file requirements-dev.lock
printf 'torch\naccelerate\n' |
    compile "$@" pyproject.toml --extra tasks --excludes - $(besides) --constraints requirements-dev.lock --output-file requirements-tasks.lock
