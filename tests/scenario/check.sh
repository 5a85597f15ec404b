#!/usr/bin/env bash
# The shipped scenarios as a whole: each comes out as expected, the controls fail when nothing is
# expected of them. Slow ones are left to the test `scenarios`, since this one also runs under the
# sanitizers. Usage: check.sh LOCKSTEP, in the source directory.
set -u
lockstep=$1
failed=0

expect_status() {  # WANTED ARGUMENT...
  local wanted=$1 status output
  shift
  output=$("$lockstep" "$@" 2>&1 </dev/null)
  status=$?
  if [ "$status" -eq "$wanted" ]; then
    echo "ok      exit status $wanted: lockstep $*"
  else
    failed=$((failed + 1))
    echo "FAILED  exit status $status, expected $wanted: lockstep $*"
    printf '%s\n' "$output" | tail -n 20 | sed 's/^/        /'
  fi
}

mapfile -t upstream < <(grep -L '"slow": true' scenarios/upstream/*.json)
expect_status 0 run "${upstream[@]}"
expect_status 0 run --no-expect "${upstream[@]}"
for control in scenarios/controls/*.json; do
  expect_status 0 run "$control"
  expect_status 1 run --no-expect "$control"
done
for scenario in scenarios/upstream/*.json scenarios/controls/*.json; do
  name=$(basename "$scenario" .json)
  grep -q "\"name\": \"$name\"" "$scenario" && continue
  failed=$((failed + 1))
  echo "FAILED  $scenario does not bear the name $name"
done

[ "$failed" -eq 0 ] && echo "all as expected"
[ "$failed" -eq 0 ]
