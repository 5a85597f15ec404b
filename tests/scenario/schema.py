#!/usr/bin/env python3
"""Every shipped scenario is valid under scenarios/schema.json.

Judged by an implementation that is not ours.
"""
import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: the Python module jsonschema is missing (python3-jsonschema)")
    sys.exit(77)

root = pathlib.Path("scenarios")
schema = json.loads((root / "schema.json").read_text())
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)

files = [path for path in sorted(root.rglob("*.json")) if path.name != "schema.json"]
bad = 0
for path in files:
    for error in validator.iter_errors(json.loads(path.read_text())):
        pointer = "".join(f"/{part}" for part in error.absolute_path)
        print(f"{path}: {pointer}: {error.message[:200]}")
        bad += 1
print(f"{len(files)} scenarios, {bad} errors")
sys.exit(1 if bad or not files else 0)
