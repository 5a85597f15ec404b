#!/usr/bin/env python3
"""The command line keeps its promises. Usage: command_line.py LOCKSTEP, from the source folder."""
import json
import lzma
import pathlib
import subprocess
import sys
import tempfile
import xml.dom.minidom

LOCKSTEP = sys.argv[1]
SCENARIO = "scenarios/upstream/last-token.json"
CONTROL = "scenarios/controls/commit.skip_state.json"
CHAT = "scenarios/traces/mooncake_conversation.jsonl.xz"
failures = []


def lockstep(*arguments, status=0, stdin=b""):
    done = subprocess.run([LOCKSTEP, *arguments], input=stdin, capture_output=True, timeout=120)
    if done.returncode != status:
        failures.append(f"{arguments}: exit status {done.returncode}, expected {status}")
        failures.append(done.stderr.decode())
    return done.stdout.decode()


def check(what, holds):
    if not holds:
        failures.append(what)


def distinct(pairs):
    keys = [key for key, _ in pairs]
    check(f"duplicate keys {keys}", len(keys) == len(set(keys)))
    return dict(pairs)


def check_run(folder):
    result, junit, events = folder / "r.json", folder / "j.xml", folder / "e.jsonl"
    text = lockstep("run", SCENARIO, "--json", result, "--junit", junit, "--events", events,
                    "--check-determinism")
    check("the table names the scenario", "last-token" in text)
    check("no colours without a terminal", "\x1b" not in text)
    envelope = json.loads(result.read_text(), object_pairs_hook=distinct)
    head = [envelope[key] for key in ("version", "command", "ok")]
    check("the envelope", head == [1, "run", True])
    xml.dom.minidom.parse(str(junit))
    lines = events.read_text().splitlines()
    logged = [json.loads(line, object_pairs_hook=distinct) for line in lines[1:]]
    check("as many events as the result counts", len(logged) == envelope["scenarios"][0]["events"])
    check("quiet says nothing", lockstep("run", SCENARIO, "-q") == "")

    slow = "scenarios/upstream/inkling-e2e.json"
    lockstep("run", SCENARIO, slow, "--fast", "-q", "--json", result)
    names = [entry["name"] for entry in json.loads(result.read_text())["scenarios"]]
    check("--fast leaves the slow ones out", names == ["last-token"])
    lockstep("run", slow, "--fast", status=2)

    digests = []
    for seed in ("1", "2"):
        lockstep("run", SCENARIO, "-q", "--seed", seed, "--json", result)
        digests.append(json.loads(result.read_text())["scenarios"][0])
    check("--seed is the run's seed", [entry["seed"] for entry in digests] == [1, 2])


def check_print(folder):
    printed = folder / "printed.json"
    printed.write_text(lockstep("run", SCENARIO, "--print"))
    check("--print writes defaults", json.loads(printed.read_text())["cache"]["prefill_chunk"] > 0)
    again = lockstep("run", printed, "--print")
    check("what is printed is a scenario", again == printed.read_text())
    lockstep("run", printed, "-q")


def check_trace(folder):
    result = folder / "t.json"
    lockstep("trace", CHAT, "--limit", "20", "--max-output", "1", "-q", "--json", result)
    figures = json.loads(result.read_text())["figures"]
    check("requests of the trace", figures["requests"] == 20)
    with lzma.open(CHAT) as trace:
        first = [next(trace) for _ in range(20)]
    references = sum(len(json.loads(line)["hash_ids"]) for line in first)
    check("block references of the trace", figures["block_references"] == references)
    lockstep("trace", "-", "--max-output", "1", "-q", "--json", result, stdin=b"".join(first))
    check("standard input is the same trace",
          json.loads(result.read_text())["figures"]["block_references"] == references)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_run(folder)
        check_print(folder)
        check_trace(folder)
    lockstep("run", CONTROL, "-q", "--no-expect", status=1)
    check("--help has an example", "Example:" in lockstep("run", "--help"))
    check("--help has an example", "Example:" in lockstep("trace", "--help"))
    check("doctor names the compiler", "compiler" in lockstep("doctor"))
    lockstep("run", SCENARIO, "--json", "/no/such/folder/r.json", status=2)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


sys.exit(main())
