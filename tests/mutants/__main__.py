"""Run the simulation, torture, or tests against each mutant: python -m tests.mutants [NAME ...]"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from msgspec import Struct

REPOSITORY = Path(__file__).resolve().parents[2]
PATCHES = Path(__file__).parent / "patches"


SIMULATE = ("-m", "tests.simulation", "--stop", "--quick", "--seeds")
#: Those that the simulation on SQLite cannot kill: locks and cursors exist on PostgreSQL alone, and shutdown is not
#: simulated.
IN_LOCKSTEP = {"limit-counted-without-a-lock", "cursor-never-looks-back"}
BY_TORTURE = {"outcome-dropped-at-shutdown"}
#: Those that break no invariant: polling repairs what they break within its time, or makes up for nothing that is
#: simulated. The named tests kill them.
BY_TESTS = {
    "tries-share-a-token": "tests/store/test_late_statements.py",
    "enqueue-notifies-no-sleeper": "tests/store/test_wake_ups.py",
    "jobs-left-behind-wake-no-other": "tests/worker/test_idle.py",
    "poll-forgotten": "tests/worker/test_idle.py",
    "no-room-keeps-the-notification": "tests/store/test_wake_ups.py",
}


class Verdict(Struct, frozen=True):
    """Whether a mutant was killed, in how many seeds and seconds, and which invariants it broke, or which test."""

    name: str
    is_killed: bool
    seeds: int
    seconds: float
    broken: str


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="the mutants (default: all)")
    parser.add_argument("--seeds", type=int, default=500, help="seeds for each (default 500)")
    options = parser.parse_args()
    names = options.names or sorted(path.stem for path in PATCHES.glob("*.patch"))
    print(f"{'mutant':44} {'killed':7} {'seeds':>5} {'s':>5}  invariants")
    verdicts = []
    for name in names:
        verdict = judge(name, options.seeds)
        verdicts.append(verdict)
        word = "yes" if verdict.is_killed else "NO"
        print(f"{name:44} {word:7} {verdict.seeds:5} {verdict.seconds:5.0f}  {verdict.broken}", flush=True)
    killed = sum(one.is_killed for one in verdicts)
    print(f"{killed} of {len(verdicts)} killed")
    return 0 if killed == len(verdicts) else 1


def judge(name: str, seeds: int) -> Verdict:
    """Apply a patch to a copy of the package, and run it until an invariant is broken, or a test fails."""
    words = (*SIMULATE, str(seeds), *(["--postgres"] if name in IN_LOCKSTEP else []))
    if name in BY_TORTURE:
        words = ("-m", "relet", "torture", "--seconds", "60", "--seed", "1")
    if name in BY_TESTS:
        words = ("-m", "pytest", "--all", "-q", "-x", BY_TESTS[name], "-m", "not long")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(REPOSITORY / "src", Path(folder, "src"), ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run(["git", "apply", str(PATCHES / f"{name}.patch")], cwd=folder, check=True)
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, *words], cwd=REPOSITORY, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": f"{folder}/src", "PYTHONHASHSEED": "0"},
        )  # fmt: skip
    ran = re.search(r"(\d+) seeds in", done.stdout)
    broken = re.search(r"[1-9]\d* seeds broke an invariant (.*)|([1-9]\d*) violations", done.stdout)
    found = (broken[1] or _letters(done.stdout)) if broken else (done.stderr.strip().splitlines() or [""])[-1][:60]
    failed = re.search(r"^FAILED \S+::(\w+)", done.stdout, re.MULTILINE)
    if failed is not None:
        found = failed[1]
    is_killed = (broken or failed) is not None and done.returncode != 0
    return Verdict(name, is_killed, int(ran[1]) if ran else 0, time.monotonic() - began, found)


def _letters(text: str) -> str:
    """The invariants that torture reports."""
    return str(dict(Counter(re.findall(r"^  ([A-Z]+) ", text, re.MULTILINE))))


if __name__ == "__main__":
    sys.exit(main())
