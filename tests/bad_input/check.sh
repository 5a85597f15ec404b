#!/usr/bin/env bash
# Bad input must end with exit status 2 and a message that names the place and what was expected,
# before anything has run. Usage: check.sh LOCKSTEP, from anywhere.
set -u
lockstep=$(realpath -- "$1")
cd "$(dirname -- "$0")" || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0
failed=0

report() {  # NAME REASON: an empty reason is a pass
  if [ -z "$2" ]; then
    passed=$((passed + 1))
    echo "ok      $1"
  else
    failed=$((failed + 1))
    echo "FAILED  $1: $2"
    sed 's/^/        stderr: /' "$scratch/stderr" | head -n 5 | cut -c 1-300
  fi
}

# Runs the program with the arguments after NAME and the wanted substrings of stderr in `wanted`.
refused() {  # NAME ARGUMENT...
  local name=$1 status reason="" part
  shift
  timeout 60 "$lockstep" "$@" >"$scratch/stdout" 2>"$scratch/stderr" </dev/null
  status=$?
  [ "$status" -eq 2 ] || reason="exit status $status, expected 2"
  for part in "${wanted[@]}"; do
    if ! grep -qF -- "$part" "$scratch/stderr"; then
      reason="${reason:+$reason; }stderr lacks '$part'"
    fi
  done
  report "$name" "$reason"
}

# Sets `wanted` to the fields of "a | b | c".
split() {
  wanted=()
  local rest="$1 | "
  while [ -n "$rest" ]; do
    wanted+=("${rest%% | *}")
    rest=${rest#* | }
  done
}

while IFS= read -r line; do
  case $line in '' | '#'*) continue ;; esac
  split "$line"
  verb=${wanted[0]} file=${wanted[1]}
  wanted=("${wanted[@]:2}")
  refused "$verb $file" "$verb" "$file"
done <expected.txt

# Too large to keep here.
head -c 200000 /dev/zero | tr '\0' '[' >"$scratch/deep.json"
wanted=("32 levels")
refused "run: 200,000 open brackets" run "$scratch/deep.json"
head -c $((65 << 20)) /dev/zero | tr '\0' ' ' >"$scratch/large.json"
wanted=("large.json" "67108864 bytes")
refused "run: a file of 65 MiB" run "$scratch/large.json"
rm "$scratch/large.json"

# Usage.
wanted=("no-such-file.json")
refused "run: no such file" run no-such-file.json
refused "trace: no such file" trace no-such-file.json
mkdir "$scratch/empty"
wanted=("empty")
refused "run: a folder without scenarios" run "$scratch/empty"
wanted=()
refused "no verb"
refused "unknown verb" walk
wanted=("--no-such-option")
refused "unknown option" run --no-such-option scenario
wanted=("page")
refused "trace: a cache key of the wrong type" trace --cache page=a trace/negative-input.jsonl
wanted=("pages")
refused "trace: an unknown cache key" trace --cache pages=16 trace/negative-input.jsonl

# Nothing half-run: a bad file beside a good one keeps the good one from running.
good='{"version": 1, "name": "good", "prompts": {"A": {"random": 200}},
  "steps": [{"submit": "r1", "prompt": "A", "decode": 1}, {"run": "idle"}]}'
echo "$good" >"$scratch/good.json"
for bad in scenario/unknown-key.json startup/kv-scale.json; do
  wanted=("$bad")
  refused "nothing half-run: good.json before $bad" \
    run --json "$scratch/result.json" "$scratch/good.json" "$bad"
  reason=""
  [ ! -e "$scratch/result.json" ] || reason="a result was written"
  grep -q "good" "$scratch/stdout" && reason="stdout speaks of the good scenario"
  report "nothing half-run: no result beside $bad" "$reason"
  rm -f "$scratch/result.json"
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
