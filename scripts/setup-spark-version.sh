#!/bin/sh
# setup-spark-version.sh VENV PYSPARK [PYTHON]: a virtualenv with thalweg and thalweg-lab (editable) and that version of PySpark; all else
# is pinned by constraints.txt. Run from the root of the repository. Does nothing if the virtualenv is up to date.
set -eu

venv=$1
pyspark=$2
stamp=$venv/.thalweg-setup
if [ -e "$stamp" ] && [ -z "$(find pyproject.toml lab/pyproject.toml constraints.txt "$0" -newer "$stamp")" ]; then
    exit 0
fi
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    python=${3:-$(sh "${0%/*}/ensure-python.sh")}
    "$python" -m venv "$venv"
fi
constraints=$(mktemp)
trap 'rm -f "$constraints"' EXIT
sed "s/^pyspark==.*/pyspark==$pyspark/" constraints.txt >"$constraints"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -c "$constraints" -e ".[dev,dashboard]" -e ./lab
touch "$stamp"
