#!/bin/sh
# run-tests.sh PYTHON [ARGUMENT...]: the tests in two processes at a time, which keep two cores busy. One process runs
# the tests that need Spark, so that there is one session; the other runs the rest. Which process runs a test, and after
# which others, never changes. The output of the second comes when the first is done.
# Arguments go to both processes of pytest. Fails if one of them fails, or if neither found a test.
set -u

python=$1
shift
log=$(mktemp)
"$python" -m pytest -m "not spark and not cluster and not long" "$@" >"$log" 2>&1 &
rest=$!
trap 'kill "$rest" 2>/dev/null; rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"$python" -m pytest -m "spark and not cluster and not long" "$@"
spark_status=$?
wait "$rest"
rest_status=$?
cat "$log"

no_tests=5 # how pytest says that it found none: the arguments may choose tests of one process
[ "$spark_status" -ne "$no_tests" ] || spark_status=$rest_status
[ "$rest_status" -ne "$no_tests" ] || rest_status=$spark_status
[ "$spark_status" -eq 0 ] || exit "$spark_status"
exit "$rest_status"
