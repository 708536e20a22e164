#!/bin/sh
# Installs what the system lacks, where it may (root, or sudo without a password, and apt-get): system.sh PACKAGE...
#
# A package of Debian's names. Where it may not, says in one line what will be missing, and ends well all the same.
set -eu

is_there() {
    case $1 in
        bubblewrap) commands=bwrap ;;
        chromium) commands="chromium chromium-browser google-chrome google-chrome-stable" ;;
        slurm-wlm) commands=slurmctld ;;
        munge) commands=munged ;;
        *) return 1 ;;
    esac
    for command in $commands; do
        if command -v "$command" >/dev/null; then return 0; fi
    done
    return 1
}

loss() {
    case $1 in
        bubblewrap) echo "without it agents' scripts run in Docker or Landlock where this machine has them, and otherwise 'mlab run' stops ('mlab doctor' tells)" ;;
        chromium) echo "without it the tests of the report page in a browser are skipped" ;;
        slurm-wlm | munge) echo "without it the tests on a real Slurm are skipped" ;;
        *-venv) echo "without it this Python makes no environments; have it installed, or name another with PYTHON=/path/to/python3" ;;
    esac
}

if [ "$(id -u)" = 0 ]; then
    as_root="env"
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root="sudo -n env"
else
    as_root=""
fi

apt_install() {
    $as_root DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 install --no-install-recommends --yes "$1" </dev/null >/dev/null 2>&1
}

for package in "$@"; do
    if is_there "$package"; then continue; fi
    if [ -z "$as_root" ] || ! command -v apt-get >/dev/null; then
        echo "$package is not installed, and cannot be from here (that takes apt-get, and root or sudo without a password): $(loss "$package")."
        continue
    fi
    echo "Installing the system package $package (apt-get) ..."
    # The lists are only fetched where the first try shows that they are missing or old.
    if ! apt_install "$package"; then
        $as_root apt-get -qq update </dev/null >/dev/null 2>&1 || true
        apt_install "$package" || echo "apt-get could not install $package: $(loss "$package")."
    fi
done
