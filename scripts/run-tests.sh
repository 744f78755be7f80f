#!/bin/sh
# run-tests.sh PYTHON MARKS [ARGUMENT...]: the tests that an expression of pytest's marks selects, in two processes at a
# time, which keep two cores busy and take about as long as each other: one runs the tests on Spark but those of joins, and
# those of the cells and orders of joins, and need not look for doctests; the other runs those of joins and the other tests
# without Spark. Which process runs a test, and after which others, never changes. The output of the second comes when the
# first is done. Arguments go to both processes of pytest. Fails if one of them fails, or if neither found a test.
set -u

python=$1
marks=$2
shift 2
log=$(mktemp)
"$python" -m pytest -m "(joins or not spark and not mjoin) and $marks" "$@" >"$log" 2>&1 &
second=$!
trap 'kill "$second" 2>/dev/null; rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"$python" -m pytest -m "(spark and not joins or mjoin) and $marks" --ignore=src --ignore=lab/src "$@"
first_status=$?
wait "$second"
second_status=$?
cat "$log"

no_tests=5 # how pytest says that it found none: the arguments may choose tests of one process
[ "$first_status" -ne "$no_tests" ] || first_status=$second_status
[ "$second_status" -ne "$no_tests" ] || second_status=$first_status
[ "$first_status" -eq 0 ] || exit "$first_status"
exit "$second_status"
