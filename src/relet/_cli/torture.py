"""`relet torture URL`: inject faults into workers and database connections, and check the history that they leave."""

from __future__ import annotations

import argparse
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from .. import logs
from .._core import validate
from .._system import HAS_PROCESS_GROUPS
from ..app import App
from ..errors import ReletError
from . import output
from .load_app import CommandError

if TYPE_CHECKING:
    from .._torture.run import Report
    from .._torture.settings import Settings

DESCRIPTION = """\
Run workers, producers and an operator on your database, kill and disturb them, and check that no job was lost, none
ran twice without a fault that explains it, and no limit was exceeded.

It uses a scratch schema (PostgreSQL) or a file in a temporary folder (SQLite) and does not touch your tables, but it
terminates its own sessions and locks its own tables, and your server does the work: do not run it beside production."""

TIERS = {"S": 60.0, "M": 600.0, "L": 3600.0}  # seconds
RESTART_WITHIN = 120.0  # seconds


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "torture",
        help="inject faults on your own database, and check every guarantee",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("url", nargs="?", metavar="URL", help="the URL of a PostgreSQL database (default: a SQLite file)")
    add(
        "--tier", choices=list(TIERS), default="S", help="S: a minute of faults, M: ten minutes, L: an hour (default S)"
    )
    add("--seconds", type=float, metavar="S", help="inject faults for this long, in place of a tier")
    add("--seed", type=int, metavar="N", help="the seed of the faults and jobs (default: a new one)")
    add("--plan", metavar="FILE", help="inject the faults of this plan.json of an earlier run")
    add("--restart", metavar="COMMAND", help="a command that restarts the server, such as 'docker restart -t 0 db'")
    add(
        "--folder",
        metavar="DIR",
        help="keep history, plan and logs in this new folder (default: only if a check fails)",
    )
    add("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run, then print what happened. Exit code 1: a guarantee was broken."""
    from .._torture.plan import Fault  # only this command needs them
    from .._torture.run import planned, torture
    from .._torture.settings import Settings

    if not HAS_PROCESS_GROUPS:
        raise CommandError("relet torture needs Linux or macOS: it kills and suspends processes")
    logs.configure("error", as_json=False)
    seconds = TIERS[options.tier]
    if options.seconds is not None:
        seconds = validate.seconds("--seconds", options.seconds, minimum=1.0, maximum=86400.0)
    seed = random.randrange(1_000_000) if options.seed is None else options.seed  # noqa: S311 - no secret
    with _folder(options.folder) as folder:
        url = options.url or f"sqlite:///{folder}/jobs.db"
        if url.startswith("sqlite:") and options.url:
            raise CommandError("Leave out the URL: the SQLite file is made in a temporary folder")
        App(url).close()  # raises if the URL is invalid
        settings = Settings(url, url, f"relet_torture_{uuid.uuid4().hex[:8]}", str(folder), seed, seconds)
        hooks = {} if options.restart is None else {"restart": _restart(options.restart)}
        if options.plan is None:
            plan = planned(settings, hooks)
        else:
            plan = msgspec.json.decode(Path(options.plan).read_bytes(), type=list[Fault])
        with _dropped(settings):
            report = torture(settings, plan, hooks=hooks, progress=_progress)
        if options.json:
            output.as_json(report)
        else:
            print_report(report, kept=bool(options.folder or report.violations))
        if not report.violations and options.folder is None:
            shutil.rmtree(folder)
    return 1 if report.violations else 0


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _restart(command: str) -> Callable[[float], object]:
    words = shlex.split(command)
    return lambda _: subprocess.run(words, check=True, capture_output=True, timeout=RESTART_WITHIN)


@contextmanager
def _folder(wanted: str | None) -> Iterator[Path]:
    """A new folder. It stays if the block ends in an unexpected error."""
    folder = Path(tempfile.mkdtemp(prefix="relet-torture-")) if wanted is None else Path(wanted).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=wanted is None)
    except FileExistsError:
        raise CommandError(f"{folder} exists: choose a new folder") from None
    try:
        yield folder
    except (KeyboardInterrupt, CommandError, ReletError):
        if wanted is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise


@contextmanager
def _dropped(settings: Settings) -> Iterator[None]:
    """Drop the scratch schema in the end."""
    from .bench.scratch import drop_schema  # only this command and bench need it

    try:
        yield
    finally:
        if not settings.is_sqlite:
            drop_schema(settings.direct, settings.schema, report=True)


def print_report(report: Report, *, kept: bool) -> None:
    kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(report.faults.items()))
    print(f"{report.jobs:,} jobs in {report.attempts:,} attempts, {report.lost:,} of them lost; seed {report.seed}")
    print(f"{sum(report.faults.values()):,} faults: {kinds}")
    median, late = report.rescued_in
    print(f"From the expiry of a lease to its reaping: median {median:.1f} s, 99th percentile {late:.1f} s")
    print(f"All jobs had ended {report.healed_in:.1f} s after the last fault")
    for one in report.violations[:20]:
        print(f"  {one.invariant} {one.job} {output.plain(one.text)}")
    if report.violations:
        print(f"{len(report.violations):,} violations. The invariants are in docs/proof.md")
    else:
        print("No violation")
    if kept:
        print(f"History, plan and logs: {report.folder}")
