#!/bin/sh
# setup-python.sh VENV: a virtualenv with thalweg and thalweg-lab (both editable), pinned by constraints.txt.
# Run from the root of the repository. Keeps a virtualenv that is there already.
set -eu

venv=$1
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    python=$(sh "${0%/*}/ensure-python.sh")
    "$python" -m venv "$venv"
fi
"$venv/bin/python" -m pip install --disable-pip-version-check -c constraints.txt -e ".[dev,dashboard]" -e ./lab
