#!/bin/sh
# Install the locks into .venv: environment.sh [dev] [tasks]
#
# It needs only Python 3.11 or newer. A lock is installed once, and again when it has changed: a copy in .venv says what was installed.
# Packages that are in no lock are left alone.
set -eu
cd "$(dirname "$0")/.."

stop() {
    echo "$1" >&2
    exit 1
}

find_python() {
    for python in ${PYTHON:-python3.13 python3.12 python3.11 python3}; do
        # Asked, not only looked for: a version manager leaves commands that stand for a Python it does not have.
        if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            echo "$python"
            return
        fi
    done
    stop "No Python 3.11 or newer found (tried ${PYTHON:-python3.13 python3.12 python3.11 python3}): install one, or name yours with PYTHON=/path/to/python3"
}

make_venv() {
    python=$(find_python)
    # Debian and Ubuntu keep these two modules in a package of their own.
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        sh tools/system.sh "$package"
        "$python" -c 'import ensurepip, venv' 2>/dev/null || exit 1
    fi
    echo "Making .venv with $("$python" -c 'import platform, sys; print(f"Python {platform.python_version()} ({sys.executable})")')."
    "$python" -m venv --clear .venv
    pwd >.venv/made-in
}

pip() {
    # -qq hides warnings about the machine's own pip settings; errors are shown.
    rm -f .venv/compiled
    .venv/bin/python -m pip -qq --disable-pip-version-check --no-input install --no-compile "$@" </dev/null
}

install_lock() {
    cmp -s "$1" ".venv/$1" && return
    echo "Installing $1 ($(sed -n "s/==.*//p" "$1" | sort -u | grep -c .) packages) ..."
    # The locks name every package, so that pip has nothing to resolve.
    pip --no-deps --require-hashes --requirement "$1"
    cp "$1" ".venv/$1"
}

compile_packages() {
    # With all cores, where pip uses one, and without the packages' own tests. Some packages hold files for other Pythons.
    .venv/bin/python -m compileall -qq -j 0 -x '/tests?/' .venv/lib >/dev/null 2>&1 || true
    touch .venv/compiled
}

# An environment cannot be moved, so that of a moved or copied clone is made again.
if [ ! -x .venv/bin/python ] || [ "$(cat .venv/made-in 2>/dev/null)" != "$PWD" ]; then
    make_venv
fi

install_lock requirements.lock
if ! cmp -s pyproject.toml .venv/pyproject.toml; then
    # The lock holds the build backend, so nothing is fetched here.
    pip --no-deps --no-build-isolation --editable .
    cp pyproject.toml .venv/pyproject.toml
fi
for extra in "$@"; do
    lock="requirements-$extra.lock"
    [ -f "$lock" ] || stop "There is no lock for '$extra', only for: $(echo requirements-*.lock | sed 's/requirements-//g; s/\.lock//g'). Install other packages with .venv/bin/pip install."
    install_lock "$lock"
    # Torch is in no lock, since its right build depends on the machine; one that is installed already stays.
    if [ "$extra" = tasks ] && ! .venv/bin/python -c 'import importlib.metadata as m; m.version("torch"), m.version("accelerate")' 2>/dev/null; then
        echo "Installing ${TORCH:=torch==2.13.0} and what needs it ..."
        pip "$TORCH" accelerate==1.15.0
    fi
done
if [ ! -e .venv/compiled ]; then compile_packages; fi
