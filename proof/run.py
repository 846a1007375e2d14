"""Checks the models of this folder with spin: each variant must hold, or break the property that its header names.

    python -m proof.run [MODEL ...]

A model's header has a line for each variant:  variant  NAME  CHECK  EXPECTED  why.  NAME is passed as a macro, `-` is
the model as it stands. CHECK is `safety` (assertions and end states) or `liveness` (the formula `ends`, under weak
fairness); its name in capitals is a macro too. EXPECTED is `holds`, the property that breaks, or `cycle` for a run in
which the formula never becomes true.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
DEPTH = 10_000  # steps; a longer run is an error, as the search would not be complete
SECONDS = 60.0
COMPILE = {"safety": ["-DSAFETY", "-DNOCLAIM"], "liveness": ["-DNFAIR=3"]}
SEARCH = {"safety": [], "liveness": ["-a", "-f", "-N", "ends"]}
ERRORS = (
    (re.compile(r"^pan:\d+: assertion violated !?\(*(\w+)", re.MULTILINE), None),
    (re.compile(r"^pan:\d+: acceptance cycle", re.MULTILINE), "cycle"),
    (re.compile(r"^pan:\d+: invalid end state", re.MULTILINE), "end state"),
)
VARIANT = re.compile(r"^ \* variant +(\S+) +(safety|liveness) +(\w+) +(\S.*)$", re.MULTILINE)


class Variant(NamedTuple):
    """A line of a header. `name`: the macro that selects it; `-` for the model as it stands."""

    model: str
    name: str
    check: str
    expected: str
    why: str


class Result(NamedTuple):
    """The result of spin: `holds`, the name of the property that broke, or a problem of the search itself."""

    found: str
    states: int
    seconds: float


def variants(models: Iterable[str] = ()) -> Iterator[Variant]:
    """The variants of these models; of all models if none is named."""
    for name in sorted(models) or sorted(path.stem for path in FOLDER.glob("*.pml")):
        for match in VARIANT.finditer((FOLDER / f"{name}.pml").read_text(encoding="utf-8")):
            yield Variant(name, *match.groups())


def missing() -> list[str]:
    """The programs that a check needs and that are not installed."""
    return [program for program in ("spin", "gcc") if shutil.which(program) is None]


def check(variant: Variant) -> Result:
    """Compile one variant in a folder that is deleted afterwards, and search all its states."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="relet-proof-") as folder:
        macros = [f"-D{name}" for name in (variant.check.upper(), variant.name) if name != "-"]
        _run(folder, "spin", "-a", *macros, str(FOLDER / f"{variant.model}.pml"))
        _run(folder, "gcc", "-O0", "-w", *COMPILE[variant.check], "-o", "pan", "pan.c")
        output = _run(folder, f"{folder}/pan", f"-m{DEPTH}", "-w20", *SEARCH[variant.check])
    states = re.search(r"(\d+) states, stored", output)
    return Result(found_in(output), int(states[1]) if states else 0, time.monotonic() - began)


def _run(folder: str, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode or "Error:" in done.stdout:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stdout}{done.stderr}")
    return done.stdout


def found_in(output: str) -> str:
    """The first error that pan reports, or `holds`."""
    for pattern, name in ERRORS:
        match = pattern.search(output)
        if match:
            return name or match[1]
    if "max search depth too small" in output or "Search not completed" in output:
        return "search not complete"
    return "holds" if re.search(r"errors: 0$", output, re.MULTILINE) else "unknown"


def main(models: Iterable[str] = ()) -> int:
    if missing():
        print(f"Install {' and '.join(missing())}; on Debian and Ubuntu: apt-get install spin gcc", file=sys.stderr)
        return 1
    row = "{:<10} {:<21} {:<9} {:<11} {:<11} {:>8} {:>8}"
    print(row.format("model", "variant", "check", "expected", "found", "states", "seconds"))
    todo = list(variants(models))
    differences = 0
    with ThreadPoolExecutor(2) as pool:
        for variant, result in zip(todo, pool.map(check, todo), strict=True):
            differences += result.found != variant.expected
            print(row.format(*variant[:4], result.found, result.states, f"{result.seconds:.1f}"), flush=True)
    print(f"{len(todo)} variants, {differences} differ from what their headers expect")
    return 1 if differences or not todo else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
