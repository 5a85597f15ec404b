#!/usr/bin/env python3
"""A nightly campaign finds nothing, reaches every sometimes-point and nearly all pairs of features.

Usage: coverage.py LOCKSTEP [SEEDS]
"""
import json
import pathlib
import subprocess
import sys
import tempfile

LEAST_PAIRS = 0.99


def main():
    seeds = sys.argv[2] if len(sys.argv) > 2 else "20000"
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "fuzz.json"
        run = subprocess.run([sys.argv[1], "fuzz", "--profile", "nightly", "--seeds", seeds,
                              "--jobs", "2", "--json", report], check=False)
        result = json.loads(report.read_text())
    for point in result["never"]:
        print(f"never: {point}")
    for pair in result["apart"]:
        print(f"apart: {pair}")
    figures = result["figures"]
    pairs = figures["feature_pairs"] / figures["all_feature_pairs"]
    good = run.returncode == 0 and not result["never"] and pairs >= LEAST_PAIRS
    return 0 if good else 1


sys.exit(main())
