#!/usr/bin/env python3
"""What holds for the words of `fingerprint` holds for numbers: upstream scenarios on inkling-pico.

Usage: on_pico.py LOCKSTEP, from the source folder. Each scenario of scenarios/upstream that runs on
`fingerprint` is run again on `inkling-pico`, with the expectations that it has: how much is reused
follows from page, window and state grid, which stay what they are. A scenario that fixes another
model (inkling-*) is left out.

Kept from the scenario: its own `window` and `state_chunk`. Else the window is the preset's 16
instead of 64 tokens, which changes no expectation where it is below the page, and a scenario with
smaller pages states its window. Else `state_chunk` is overridden so that G = page. No expectation
depends on anything else of the model, so none is dropped or changed; what numbers add is that each
request's logits are compared with both judges.

Where the number of ranks divides the preset's 4 KV heads, ranks share the heads. A scenario of one
rank runs once more with 4 ranks, as `NAME on 4 ranks`: the same is reused, and the judges, who
compute the whole model, see the same logits. Scenarios with faults are left out there: a fault on
one rank of four is another scenario.
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

LOCKSTEP = sys.argv[1]
UPSTREAM = pathlib.Path("scenarios/upstream")
PICO = json.loads(pathlib.Path("model/presets/inkling-pico.json").read_text())
REFERENCE_KL_LIMIT = 1e-9


def model_on_pico(model, page):
    """The scenario's model on the other preset; None where the scenario fixes its model."""
    own = {"preset": model} if isinstance(model, str) else dict(model)
    if own.get("preset", "fingerprint") != "fingerprint":
        return None
    own["preset"] = "inkling-pico"
    own.setdefault("state_chunk", math.gcd(PICO["state_chunk"], page))
    return own


def write_variants(folder):
    """Files of that folder, one per scenario that does not fix its model."""
    for path in sorted(UPSTREAM.glob("*.json")):
        scenario = json.loads(path.read_text())
        page = scenario.get("cache", {}).get("page", 128)
        model = model_on_pico(scenario.get("model", "fingerprint"), page)
        if model is None:
            continue
        scenario["model"] = model
        (folder / path.name).write_text(json.dumps(scenario))
        if scenario.get("ranks", 1) == 1 and "faults" not in scenario:
            name = f"{path.stem} on 4 ranks"
            (folder / f"{name}.json").write_text(json.dumps(scenario | {"ranks": 4, "name": name}))


def run(folder, report):
    """The result of `lockstep run FOLDER`; stops the program if there is none."""
    command = [LOCKSTEP, "run", folder, "-q", "--json", report]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"lockstep run ended with {done.returncode}, expected 0 or 1")
    return json.loads(report.read_text())


def complaints(scenario):
    """Why this run is not good, one line each."""
    lines = list(scenario["unexpected"])
    for name, request in scenario["requests"].items():
        if request["outcome"] != "completed":
            continue
        reference = request["kl_reference_max"]
        if request["kl_max"] != 0 or reference is None or reference > REFERENCE_KL_LIMIT:
            lines.append(f"{name}: kl_max {request['kl_max']}, kl_reference_max {reference}")
    if not scenario["as_expected"] and not lines:
        lines.append(f"verdict {scenario['verdict']}")
    return lines


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name, "variants")
        folder.mkdir()
        write_variants(folder)
        variants = {path.stem for path in folder.glob("*.json")}
        result = run(folder, pathlib.Path(name, "report.json"))

    passed = set()
    for scenario in result["scenarios"]:
        lines = complaints(scenario)
        print(f"{'FAILED' if lines else 'ok    '}  {scenario['name']}", *lines, sep="\n        ")
        if not lines:
            passed.add(scenario["name"])
    for name in sorted(variants - {scenario["name"] for scenario in result["scenarios"]}):
        print(f"FAILED  {name} was not run")
    print(f"{len(passed)} passed, {len(variants - passed)} failed")
    return 0 if passed and passed == variants else 1


sys.exit(main())
