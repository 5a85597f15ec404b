#!/usr/bin/env python3
"""Whatever the policies, the right tokens come out: upstream scenarios under each of them.

Usage: policies.py LOCKSTEP, from the source folder. Each scenario of scenarios/upstream that runs
on `fingerprint` is run again under every variation below. What it expects about how much is reused
holds for its own policies only and is left out; what remains is that no invariant is violated and
that every request that was not refused or cancelled ends with its tokens (L2 is one of them).
"""
import json
import pathlib
import subprocess
import sys
import tempfile

LOCKSTEP = sys.argv[1]
UPSTREAM = pathlib.Path("scenarios/upstream")
VARIATIONS = [
    {"ahead": 1},
    {"publish": "after_load"},
    {"publish": "after_load", "ahead": 1},
    {"overlap": "barrier", "ahead": 1},
    {"checkpoints": "every"},
    {"checkpoints": "every", "ahead": 1},
    {"reoffload": "never"},
    {"object_order": "descending"},
    {"ranks": 2, "ahead": 1},
    {"ranks": 4},
    {"ranks": 4, "publish": "after_load", "ahead": 1, "overlap": "barrier"},
]


def runs_on_fingerprint(scenario):
    model = scenario.get("model", "fingerprint")
    preset = model if isinstance(model, str) else model.get("preset", "fingerprint")
    return preset == "fingerprint"


def varied(scenario, variation):
    """The scenario under these settings; a restarted engine keeps them."""
    scenario = json.loads(json.dumps(scenario))
    scenario.pop("expect", None)
    settings = dict(variation)
    scenario["ranks"] = settings.pop("ranks", scenario.get("ranks", 1))
    scenario.setdefault("cache", {}).update(settings)
    for step in scenario["steps"]:
        engine = step.get("restart", {}).get("engine")
        if isinstance(engine, dict) and "cache" in engine:
            engine["cache"].update(settings)
    return scenario


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name, "variants")
        folder.mkdir()
        count = 0
        for path in sorted(UPSTREAM.glob("*.json")):
            scenario = json.loads(path.read_text())
            if not runs_on_fingerprint(scenario):
                continue
            for variation in VARIATIONS:
                label = " ".join(f"{key}={value}" for key, value in variation.items())
                scenario_file = folder / f"{path.stem} {label}.json"
                scenario_file.write_text(json.dumps(varied(scenario, variation)))
                count += 1
        report = pathlib.Path(name, "report.json")
        command = [LOCKSTEP, "run", folder, "--no-expect", "-q", "--json", report]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, check=False)
        if done.returncode not in (0, 1):
            sys.exit(f"lockstep run ended with {done.returncode}, expected 0 or 1")
        scenarios = json.loads(report.read_text())["scenarios"]

    failed = [pathlib.Path(s["file"]).stem for s in scenarios if s["verdict"] != "pass"]
    for name in failed:
        print(f"FAILED  {name}")
    print(f"{len(scenarios) - len(failed)} passed, {len(failed) + count - len(scenarios)} failed")
    return 0 if scenarios and not failed and len(scenarios) == count else 1


sys.exit(main())
