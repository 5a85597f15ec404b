#!/usr/bin/env python3
"""Plants a defect of each class of public bug reports in the scenarios of that class: one of them
must report it. A class without a planted defect is not in the table. usage: cases.py LOCKSTEP"""
import json
import pathlib
import subprocess
import sys
import tempfile

DEFECTS = {
    "c01": ["state.past_node_end", "state.label_minus_one"],
    "c02": ["lookup.ignore_state"],
    "c03": ["match.full_hit"],
    "c04": ["offload.before_written"],
    "c05": ["state.snapshot_too_early", "ahead.result_of_later_step"],
    "c06": ["cow.no_wait", "load.event_before_bytes"],
    "c07": ["offload.no_lock", "cow.source_unlocked"],
    "c08": ["store.lease_ignored"],
    "c09": ["load.ignore_failure", "load.no_rollback"],
    "c10": ["load.anchor_unlocked"],
    "c11": ["offload.split_forgets", "split.lock_lost"],
    "c12": ["swa.recaches_freed", "evict.orphan_state"],
    "c13": ["commit.skip_state", "state.inplace_on_tree_slot"],
    "c14": ["cancel.lock_leak", "load.abort_leaks"],
    "c15": ["evict.locked"],
    "c16": ["pool.asserts"],
    "c17": ["cancel.lock_leak", "cancel.frees_while_loading"],
    "c18": ["reset.no_epoch", "reset.unlock_first"],
    "c19": ["key.no_salt", "key.ambiguous", "key.no_extra"],
    "c20": ["key.no_layout"],
    "c21": ["state.unit_mixup"],
    "c22": ["cow.temporal_only"],
    "c23": ["spec.column_zero", "spec.no_roll_back"],
    "c24": ["lookup.max_only", "ranks.uneven_drain"],
    "c25": ["offload.claims_on_queue", "offload.hole"],
    "c26": ["pool.dirty_slot"],
    "c27": ["retract.keeps_state", "retract.stale_cursor", "match.no_limit_after_resume"],
    "c28": ["commit.pages_rule_for_state", "state.relative_grid"],
}


def reports(lockstep, cases, defect, folder):
    """Whether the defect is reported in one of the cases."""
    for case in cases:
        scenario = json.loads(case.read_text())
        scenario["defects"] = [defect]
        del scenario["expect"]
        planted = pathlib.Path(folder) / case.name
        planted.write_text(json.dumps(scenario))
        run = subprocess.run([lockstep, "run", "-q", str(planted), "--no-expect"],
                             stdout=subprocess.DEVNULL)
        if run.returncode not in (0, 1):
            sys.exit(f"{case.name} with {defect}: exit {run.returncode}")
        if run.returncode == 1:
            return True
    return False


def main():
    lockstep = sys.argv[1]
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        for name, defects in DEFECTS.items():
            cases = sorted(pathlib.Path("scenarios/cases").glob(name + "-*.json"))
            missed += [f"{name}: {defect}" for defect in defects
                       if not reports(lockstep, cases, defect, folder)]
    print("\n".join(missed) if missed else "every planted defect was reported by its class")
    sys.exit(1 if missed else 0)


main()
