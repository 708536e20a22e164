#!/bin/sh
# Writes the locks from pyproject.toml: lock.sh [--upgrade]
#
# One lock for every Python and system that is supported, with hashes and without the address of an index. The package itself stands on
# requirements.lock; the other locks add to it, and no two contradict each other. Torch and what needs it stay out: their right build depends
# on the machine.
set -eu
cd "$(dirname "$0")/.."

compile() {
    .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
        --custom-compile-command "make lock" "$@" >/dev/null
}

compile "$@" pyproject.toml --group build --output-file requirements.lock
compile "$@" --group dev --constraints requirements.lock --output-file requirements-dev.lock
for extra in openai anthropic langchain tasks; do
    .venv/bin/python tools/extra.py "$extra" |
        compile "$@" - --constraints requirements.lock --constraints requirements-dev.lock --output-file "requirements-$extra.lock"
done
