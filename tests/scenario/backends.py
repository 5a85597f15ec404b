#!/usr/bin/env python3
"""Scenarios on the emulated back end (the kernels of CUDA, on guarded host memory) have the host's
digests; free-running ones end with the host's outputs and without a violation. Usage: backends.py
LOCKSTEP"""
import json
import subprocess
import sys
import tempfile

# One scenario of each kind that takes long is enough: the guard costs system calls.
PATHS = ["scenarios/cases", "scenarios/upstream/load-failure.json",
         "scenarios/upstream/restart-with-store.json", "scenarios/upstream/ahead-overshoot.json",
         "scenarios/upstream/ranks-intersect.json"]
MISSING = 3


def run(program, *options):
    """The result of each scenario, by name."""
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        done = subprocess.run([program, "run", "--fast", "-q", "--json", result.name, *options,
                               *PATHS], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"run {' '.join(options)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return {one["name"]: one for one in json.load(result)["scenarios"]}


def assert_missing_waits_show(program):
    """Streams of the emulated device run as late as they may: who does not wait reads old bytes."""
    for defect in ("cow.no_wait", "cow.own_load_only", "load.event_before_bytes"):
        done = subprocess.run([program, "run", "-q", "--no-expect", "--backend", "emulated",
                               "--free-running", f"scenarios/controls/{defect}.json"],
                              capture_output=True, text=True)
        assert done.returncode == 1 and " D1 at step" in done.stdout, (defect, done.stdout)


def main():
    program = sys.argv[1]
    host = run(program)
    emulated = run(program, "--backend", "emulated")
    # What is reused may depend on timing, and so may expectations of it.
    free = run(program, "--no-expect", "--backend", "emulated", "--free-running")
    assert len(host) > 30, host.keys()
    for name, expected in host.items():
        assert emulated[name]["digest"] == expected["digest"], name
        assert emulated[name]["outputs_digest"] == expected["outputs_digest"], name
        assert free[name]["outputs_digest"] == expected["outputs_digest"], name
        assert free[name]["verdict"] == "pass", name
        assert free[name]["backend"] == "emulated, free-running"
    assert_missing_waits_show(program)
    for verb in (["run", PATHS[0]], ["fuzz", "--seeds", "1"],
                 ["trace", "scenarios/traces/mooncake_conversation.jsonl.xz", "--limit", "1"]):
        done = subprocess.run([program, *verb, "--backend", "cuda", "-q"], capture_output=True,
                              text=True)
        named = "--backend cuda: " in done.stderr and "CUDA" in done.stderr
        assert done.returncode in (0, MISSING), done
        assert done.returncode == 0 or named, done
    done = subprocess.run([program, "run", PATHS[0], "--backend", "tpu"], capture_output=True,
                          text=True)
    assert done.returncode == 2 and "expected one of host, emulated, cuda" in done.stderr, done


main()
