#!/bin/sh
# test-version.sh VENV ALL [ARGUMENT...]: the tests on the PySpark of a virtualenv: those that tests/versions/quick.txt names, or
# all tests on Spark if ALL is not empty. Arguments go to pytest.
set -eu

venv=$1
all=$2
shift 2
"$venv/bin/python" -c 'import pyspark, sys; print(f"PySpark {pyspark.__version__}, Python {sys.version.split()[0]}")'
if [ -n "$all" ]; then
    set -- -m "spark and not lab and not long and not chaos" "$@"
else
    # shellcheck disable=SC2046 # a path a line, without spaces
    set -- -m "(spark or cluster) and not long" $(grep -v '^#' tests/versions/quick.txt) "$@"
fi
exec "$venv/bin/python" -m pytest "$@"
