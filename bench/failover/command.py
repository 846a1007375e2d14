"""`./dev bench failover`: every scenario in a separate process, and the table."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from bench.environments import CACHE, ROOT
from bench.failover.scenarios import SCENARIOS, Scenario
from tests import servers

HELP = "a PostgreSQL primary is lost under load, in eleven ways: what is lost or runs twice, and how long nothing runs"
HEADS = (
    "scenario", "acknowledged", "lost", "started twice / ended twice / overlap", "longest time without acknowledgement",
    "longest time without a start", "from promotion to acknowledgement / start",
)  # fmt: skip
TOO_LONG = 400.0  # seconds for one scenario
Figures = Mapping[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, default=[], help="only this one; repeatable")


def main(options: argparse.Namespace) -> int:
    names = options.scenario or list(SCENARIOS)
    found: dict[str, Figures | str] = {}
    for name in names:
        found[name] = measure(name, SCENARIOS[name])
        print(f"bench: {name}: {json.dumps(found[name])}", file=sys.stderr, flush=True)
    print(table(found))
    return 1 if "did not run" in found.values() else 0


def measure(name: str, scenario: Scenario) -> Figures | str:
    """The figures, or why there are none."""
    if missing := scenario.missing() or ("" if servers.local_names() else "a PostgreSQL server"):
        return f"skipped: needs {missing}"
    folder = CACHE / "failover" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began, load = time.monotonic(), os.getloadavg()[0]
    command = [*scenario.prefix, sys.executable, "-m", "bench.failover.row", name, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            output, _ = process.communicate(timeout=TOO_LONG)
        except subprocess.TimeoutExpired:
            output = ""
        finally:
            if process.poll() is None:
                process.terminate()
    if process.returncode != 0:
        return "did not run"
    figures: dict[str, Any] = json.loads(output)
    loads = [round(one, 1) for one in (load, os.getloadavg()[0])]
    return {**figures, "seconds": round(time.monotonic() - began), "load": loads}


def table(found: Mapping[str, Figures | str]) -> str:
    """In Markdown, for docs/guides/high-availability.md."""
    rows: list[Sequence[str]] = [HEADS, ["---"] * len(HEADS)]
    rows += [(SCENARIOS[name].title, *cells(figures)) for name, figures in found.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def cells(figures: Figures | str) -> list[str]:
    if isinstance(figures, str):
        return [figures, *[""] * (len(HEADS) - 2)]
    twice = " / ".join(str(figures[name]) for name in ("started twice", "ended twice", "overlap"))
    if figures["failed first"]:
        twice += f"; {figures['failed first']} after an attempt that failed"
    gaps = [f"{figures[name]:.1f} s" for name in ("without acknowledgement", "without start")]
    promoted = [f"{figures[name]:.2f} s" for name in ("to acknowledgement", "to start") if name in figures]
    errors = ", ".join(f"{number} calls raised {name}" for name, number in figures["errors"].items())
    acknowledged = f"{figures['acknowledged']:,}" + f" ({errors})" * bool(errors)
    return [acknowledged, f"{figures['lost']:,}", twice, *gaps, " / ".join(promoted) or "-"]
