#!/bin/sh
# Prints the name of a Python 3.11 or newer that can create virtualenvs, installs one where that is
# allowed, and otherwise prints the one command to type and fails.
set -eu
. "${0%/*}/packages.sh"

# Runs each candidate instead of looking for it: version managers put names on the PATH that do not run.
find_python() {
    for python in python3.13 python3.12 python3.11 python3; do
        if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$python"
            return 0
        fi
    done
    return 1
}

# shellcheck disable=SC2016 # for the user's shell to expand
add_to_path='export PATH=/path/to/python/bin:"$PATH"'

find_python && exit 0

install_first "Python 3.11 or newer with venv" \
    apt-get:python3.13-venv apt-get:python3.12-venv apt-get:python3.11-venv \
    dnf:python3.13 dnf:python3.12 dnf:python3.11 \
    yum:python3.13 yum:python3.12 yum:python3.11 \
    zypper:python313 zypper:python312 zypper:python311 \
    apk:python3 \
    pacman:python \
    brew:python@3.13 ||
    give_up "Thalweg needs Python 3.11 or newer with venv. Install one." "$add_to_path"

find_python || give_up "The package manager has no Python 3.11 or newer. Install one." "$add_to_path"
